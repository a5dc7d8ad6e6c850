-- A payment of a customer, who may belong to another warehouse. The number of its history row is selected.
CREATE PROCEDURE payment(w INT, d INT, cw INT, cd INT, c INT, name VARCHAR(16), cents INT)
BEGIN
    DECLARE payer INT;
    DECLARE amount DECIMAL(6, 2) DEFAULT cents / 100;
    DECLARE names VARCHAR(24);
    START TRANSACTION;
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d;
    SELECT CONCAT(w_name, '    ', d_name) INTO names FROM warehouse, district
        WHERE w_id = w AND d_w_id = w AND d_id = d;
    CALL customer_of(cw, cd, c, name, payer);
    UPDATE customer SET
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = IF(c_credit = 'BC', LEFT(CONCAT_WS(' ', c_id, c_d_id, c_w_id, d, w, amount, '|', c_data), 500),
            c_data)
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (payer, cd, cw, d, w, NOW(), amount, names);
    COMMIT;
    SELECT LAST_INSERT_ID();
END
