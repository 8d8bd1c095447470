#!/usr/bin/env node
// `npm create mcp-host [folder]`: runs `mcp-host init` of the version in package.json.
import { readFileSync } from 'node:fs'

const manifest = import.meta.resolve('mcp-host/package.json')
const { bin } = JSON.parse(readFileSync(new URL(manifest), 'utf8'))
process.argv.splice(2, 0, 'init')
await import(new URL(bin['mcp-host'], manifest).href)
