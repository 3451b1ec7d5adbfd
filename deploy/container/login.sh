#!/bin/sh
# Run once by the image of PostgreSQL: the server's login, which is no superuser, and its database.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$TALLY_PASSWORD" -U postgres <<'SQL'
CREATE ROLE tally LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE tally OWNER tally ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C.UTF-8' TEMPLATE template0;
SQL
