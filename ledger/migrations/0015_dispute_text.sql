-- The words of disputes: claims, statements, reasons of rulings. The log holds their SHA-256 only, so
-- a text can be erased here and what was decided stays proven.

CREATE TABLE dispute_text (
    dispute_id text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (dispute_id, sha256),
    CONSTRAINT dispute_text_bounded CHECK (length(body) BETWEEN 1 AND 4000)
);
COMMENT ON TABLE dispute_text IS 'sha256 of the UTF-8 body, hex; the fact of the dispute names it';

GRANT INSERT, DELETE ON dispute_text TO tallystick_app, tallystick_projections;
