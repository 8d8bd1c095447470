// Starts a thread from a TypeScript file (last argument). On Node 20, threads do not inherit loaders and ignore `--import`.
import { register } from 'tsx/esm/api'

register()
await import(process.argv.pop())
