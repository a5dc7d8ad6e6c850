-- A new order; `order_lines` is `supply:item:quantity,…`. Its number is selected; 0: an item that nobody has undid
-- all of it.
CREATE PROCEDURE new_order(w INT, d INT, c INT, line_count INT, all_local INT, order_lines TEXT)
this_order: BEGIN
    DECLARE order_id, line, supply, wanted, quantity INT;
    DECLARE price, w_taxed, discount DECIMAL(7, 4);
    DECLARE one_line VARCHAR(60);
    DECLARE place CHAR(24);
    START TRANSACTION;
    SELECT d_next_o_id INTO order_id FROM district WHERE d_w_id = w AND d_id = d FOR UPDATE;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d;
    -- What the customer sees: taxes and discount.
    SELECT w_tax, c_discount INTO w_taxed, discount FROM warehouse, customer
        WHERE w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c;
    INSERT INTO orders VALUES (w, d, order_id, c, NOW(), NULL, line_count, all_local);
    INSERT INTO new_order VALUES (w, d, order_id);
    SET line = 1;
    WHILE line <= line_count DO
        SET one_line = SUBSTRING_INDEX(SUBSTRING_INDEX(order_lines, ',', line), ',', -1);
        SET supply = SUBSTRING_INDEX(one_line, ':', 1);
        SET wanted = SUBSTRING_INDEX(SUBSTRING_INDEX(one_line, ':', 2), ':', -1);
        SET quantity = SUBSTRING_INDEX(one_line, ':', -1);
        SET price = (SELECT i_price FROM item WHERE i_id = wanted);
        IF price IS NULL THEN
            ROLLBACK;
            SELECT 0;
            LEAVE this_order;
        END IF;
        UPDATE stock SET
            s_ytd = s_ytd + quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + IF(supply = w, 0, 1),
            s_quantity = s_quantity - quantity + IF(s_quantity >= quantity + 10, 0, 91)
        WHERE s_w_id = supply AND s_i_id = wanted;
        SELECT ELT(d, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08,
            s_dist_09, s_dist_10) INTO place FROM stock WHERE s_w_id = supply AND s_i_id = wanted;
        INSERT INTO order_line VALUES
            (w, d, order_id, line, wanted, supply, NULL, quantity, price * quantity, place);
        SET line = line + 1;
    END WHILE;
    COMMIT;
    SELECT order_id;
END
