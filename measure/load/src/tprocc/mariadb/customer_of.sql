-- The customer of a number, or the middle one of those of a name, ordered by first name.
CREATE PROCEDURE customer_of(w INT, d INT, c INT, name VARCHAR(16), OUT found INT)
BEGIN
    DECLARE count_of, middle INT;
    IF c > 0 THEN
        SET found = c;
    ELSE
        SELECT COUNT(*) INTO count_of FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = name;
        SET middle = (count_of - 1) DIV 2;
        SET found = NULL;
        SELECT c_id INTO found FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = name
            ORDER BY c_first LIMIT middle, 1;
        IF found IS NULL THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no customer of this name';
        END IF;
    END IF;
END
