-- Which machine made the keys of this log. Not a fact: it says so before there is one. Two machines
-- that open an empty log at once would else make two sets, and each would go on with its own.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE key_set (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    machine text NOT NULL CHECK (length(machine) <= 300),
    folder text NOT NULL CHECK (length(folder) <= 5000),
    blinding_sha256 bytea NOT NULL CHECK (octet_length(blinding_sha256) = 32),
    signer_public bytea NOT NULL CHECK (octet_length(signer_public) = 32)
);
COMMENT ON TABLE key_set IS 'Who made the keys of the log; once the log itself depends on a key, the log decides';

GRANT SELECT, INSERT ON key_set TO tallystick_projections;

RESET ROLE;
