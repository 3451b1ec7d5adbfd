-- Deliveries that wait are few among all that were made, and they are looked for every few seconds.

SET LOCAL ROLE tallystick_owner;

CREATE INDEX webhook_delivery_waiting ON webhook_delivery (endpoint_id, position)
    WHERE outcome = 'waiting';

RESET ROLE;
