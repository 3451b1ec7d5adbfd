-- Names and addresses that stand on invoices. Not facts: they may have to be erased, so they are
-- in no log, no hash and no export. An invoice that is shown after that shows ids alone.

CREATE TABLE billing_details (
    account_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    address text[] NOT NULL,
    country text COLLATE "C",
    tax_id text,
    updated_us bigint NOT NULL,
    CONSTRAINT billing_details_bounded CHECK (
        length(name) BETWEEN 1 AND 200 AND cardinality(address) <= 6
        AND length(array_to_string(address, '')) <= 1000
        AND country ~ '^[A-Z]{2}$' AND length(tax_id) <= 40
    )
) WITH (fillfactor = 70);
COMMENT ON TABLE billing_details IS 'Erasable: whoever is named here may have the row deleted';

GRANT INSERT, UPDATE, DELETE ON billing_details TO tallystick_app, tallystick_projections;
