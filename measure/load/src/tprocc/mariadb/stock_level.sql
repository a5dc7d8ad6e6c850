-- How many items of a district's last 20 orders run short.
CREATE PROCEDURE stock_level(w INT, d INT, threshold INT)
BEGIN
    DECLARE next_order INT;
    START TRANSACTION;
    SELECT d_next_o_id INTO next_order FROM district WHERE d_w_id = w AND d_id = d;
    SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = w AND s_i_id = ol_i_id
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id BETWEEN next_order - 20 AND next_order - 1
        AND s_quantity < threshold;
    COMMIT;
END
