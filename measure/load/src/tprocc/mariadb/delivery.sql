-- Delivers the oldest open order of each district; how many there were is selected.
CREATE PROCEDURE delivery(w INT, carrier INT)
BEGIN
    DECLARE d, order_id, buyer INT;
    DECLARE delivered INT DEFAULT 0;
    DECLARE total DECIMAL(12, 2);
    START TRANSACTION;
    SET d = 1;
    WHILE d <= 10 DO
        SET order_id = (SELECT no_o_id FROM new_order WHERE no_w_id = w AND no_d_id = d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE);
        IF order_id IS NOT NULL THEN
            DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = order_id;
            SELECT o_c_id INTO buyer FROM orders WHERE o_w_id = w AND o_d_id = d AND o_id = order_id FOR UPDATE;
            UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = order_id;
            UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id;
            SELECT SUM(ol_amount) INTO total FROM order_line
                WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id;
            UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = w AND c_d_id = d AND c_id = buyer;
            SET delivered = delivered + 1;
        END IF;
        SET d = d + 1;
    END WHILE;
    COMMIT;
    SELECT delivered;
END
