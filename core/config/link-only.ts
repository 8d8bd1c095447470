// Links the module in the query of its URL without running it: the first import throws before the second runs. version-hooks.ts
// replaces the second import by that module.
import './throw-linked.ts'
import './import-versions.ts'
