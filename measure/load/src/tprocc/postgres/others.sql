-- The lines of a customer's last order.
CREATE FUNCTION order_status(w int, d int, c int, name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    asking int := customer_of(w, d, c, name);
    last_order int;
    lines bigint;
BEGIN
    PERFORM c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = asking;
    SELECT o_id INTO last_order FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = asking
        ORDER BY o_id DESC LIMIT 1;
    SELECT count(ol_delivery_d) + count(ol_amount) INTO lines FROM order_line
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = last_order;
    RETURN lines;
END $$;

-- Delivers the oldest open order of each district; returns how many there were.
CREATE FUNCTION delivery(w int, carrier int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    buyer int;
    total numeric;
    delivered bigint := 0;
BEGIN
    FOR d IN 1 .. 10 LOOP
        SELECT no_o_id INTO order_id FROM new_order WHERE no_w_id = w AND no_d_id = d
            ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND; -- none is open, or somebody else has just delivered it
        DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = order_id;
        UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = w AND o_d_id = d AND o_id = order_id
            RETURNING o_c_id INTO STRICT buyer;
        UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id;
        SELECT sum(ol_amount) INTO total FROM order_line
            WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id;
        UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = w AND c_d_id = d AND c_id = buyer;
        delivered := delivered + 1;
    END LOOP;
    RETURN delivered;
END $$;

-- How many items of a district's last 20 orders run short.
CREATE FUNCTION stock_level(w int, d int, threshold int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    next_order int;
    short bigint;
BEGIN
    SELECT d_next_o_id INTO STRICT next_order FROM district WHERE d_w_id = w AND d_id = d;
    SELECT count(DISTINCT s_i_id) INTO short FROM order_line JOIN stock ON s_w_id = w AND s_i_id = ol_i_id
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id BETWEEN next_order - 20 AND next_order - 1
        AND s_quantity < threshold;
    RETURN short;
END $$;
