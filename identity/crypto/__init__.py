"""The only makers of secrets and signatures: values in, values out."""
