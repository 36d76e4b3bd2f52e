"""What goes wrong under a service that is asked all the while, and what becomes of what it has acknowledged."""
