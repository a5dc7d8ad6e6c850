-- A new order of some lines. An item that nobody has undoes all of it (TP001).
CREATE FUNCTION new_order(w int, d int, c int, items int[], supplies int[], quantities int[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    price numeric;
    place text;
BEGIN
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
        RETURNING d_next_o_id - 1 INTO STRICT order_id;
    -- What the customer sees: taxes and discount.
    PERFORM w_tax, c_discount, c_last, c_credit FROM warehouse, customer
        WHERE w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c;
    INSERT INTO orders VALUES (w, d, order_id, c, now(), NULL, cardinality(items),
        CASE WHEN w = ALL (supplies) THEN 1 ELSE 0 END);
    INSERT INTO new_order VALUES (w, d, order_id);
    FOR line IN 1 .. cardinality(items) LOOP
        SELECT i_price INTO price FROM item WHERE i_id = items[line];
        IF NOT FOUND THEN
            RAISE EXCEPTION 'unused item' USING ERRCODE = 'TP001';
        END IF;
        UPDATE stock SET
            s_quantity = s_quantity - quantities[line]
                + CASE WHEN s_quantity >= quantities[line] + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + quantities[line],
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN supplies[line] = w THEN 0 ELSE 1 END
        WHERE s_w_id = supplies[line] AND s_i_id = items[line]
        RETURNING CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
            WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
            WHEN 9 THEN s_dist_09 ELSE s_dist_10 END INTO STRICT place;
        INSERT INTO order_line VALUES (w, d, order_id, line, items[line], supplies[line], NULL, quantities[line],
            price * quantities[line], place);
    END LOOP;
    RETURN order_id;
END $$;
