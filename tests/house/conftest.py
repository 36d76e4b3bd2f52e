# A distribution of its own, with tests of its own: test_sample_plugin installs it and runs them.
collect_ignore = ["sample_plugin"]
