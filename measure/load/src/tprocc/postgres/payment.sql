-- The customer of a number, or the middle one of those of a name, ordered by first name.
CREATE FUNCTION customer_of(w int, d int, c int, name text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    found int[];
BEGIN
    IF c > 0 THEN
        RETURN c;
    END IF;
    found := ARRAY(SELECT c_id FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = name ORDER BY c_first);
    IF cardinality(found) = 0 THEN
        RAISE EXCEPTION 'no customer % in district % of warehouse %', name, d, w;
    END IF;
    RETURN found[(cardinality(found) + 1) / 2];
END $$;

-- A payment of a customer, who may belong to another warehouse.
CREATE FUNCTION payment(w int, d int, cw int, cd int, c int, name text, cents bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    amount numeric := cents / 100.0;
    payer int;
    names text;
    history_id bigint;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO STRICT names;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d
        RETURNING names || '    ' || d_name INTO STRICT names;
    payer := customer_of(cw, cd, c, name);
    UPDATE customer SET
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC'
            THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, d, w, amount, '|', c_data), 500) ELSE c_data END
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = payer;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (payer, cd, cw, d, w, now(), amount, names) RETURNING h_id INTO history_id;
    RETURN history_id;
END $$;
