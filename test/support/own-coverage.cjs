// Coverage of the test process alone: its forks load the same files as other modules, and the two cannot be added up.
delete process.env.NODE_V8_COVERAGE
