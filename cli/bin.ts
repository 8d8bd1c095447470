#!/usr/bin/env node
// The `mcp-host` program: runs one command in this process.
import { main } from './main.ts'

const { stdin, stdout, stderr, env } = process
const [, script = '', ...argv] = process.argv
main(argv, { stdin, stdout, stderr, env, cwd: process.cwd(), process, script }).then(code => {
  // Exits even if a plugin left a handle open.
  stdout.write('', () => process.exit(code))
})
