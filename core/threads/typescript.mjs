// Starts a thread whose entry, its last argument, is a TypeScript file of a checkout. On Node 20 a thread does not inherit the
// loaders of the thread that starts it, and `--import` has no effect there.
import { register } from 'tsx/esm/api'

register()
await import(process.argv.pop())
