# Run with settings of their own: by test_sample_plugin, which installs it, and by test_added_field.
collect_ignore = ["sample_plugin", "added_field"]
