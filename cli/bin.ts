#!/usr/bin/env node
// The `mcp-host` program: runs one command in this process.
import { setFlagsFromString } from 'node:v8'
import { main } from './main.ts'

// V8 allocates objects in the old generation if they often survive a scavenge, as objects of pending requests do. They
// then keep whole requests alive until a full garbage collection: a call to an upstream server takes 20 % more CPU.
setFlagsFromString('--no-allocation-site-pretenuring')

const { stdin, stdout, stderr, env } = process
const [, script = '', ...argv] = process.argv
main(argv, { stdin, stdout, stderr, env, cwd: process.cwd(), process, script }).then(code => {
  // Exits even if a plugin left a handle open.
  stdout.write('', () => process.exit(code))
})
