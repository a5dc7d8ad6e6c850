-- The lines of a customer's last order.
CREATE PROCEDURE order_status(w INT, d INT, c INT, name VARCHAR(16))
BEGIN
    DECLARE asking, last_order INT;
    START TRANSACTION;
    CALL customer_of(w, d, c, name, asking);
    SELECT o_id INTO last_order FROM orders WHERE o_w_id = w AND o_d_id = d AND o_c_id = asking
        ORDER BY o_id DESC LIMIT 1;
    SELECT COUNT(ol_delivery_d) + COUNT(ol_amount) FROM order_line
        WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = last_order;
    COMMIT;
END
