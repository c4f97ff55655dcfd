"""What an engine answers once it is ready, and what the front end makes of the answers."""
