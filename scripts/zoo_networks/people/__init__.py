"""Networks that people train in Keras for microcontrollers: small ones, of every kind, converted as people do."""
