// Leaves of the declarations in `dist` what a stranger can reach from the entries of package.json, and gives them the types
// of Koa: as files of ours, for @types/koa would bring twenty packages into every installation. A step of `npm run build`.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const IMPORTED = /(from |import\()(['"])([^'"]+)\2/g
const REQUIRED = /(require\()"([^"]+)"/g

/** What servers of other kinds would make of cookies: nothing here, and it would bring all types of Express. */
const NOT_OURS = [
  /^import (?:connect|express) = require\("(?:connect|express)"\);\n/gm,
  /^ {4}(?:connect|express)\(keys: .*\): (?:connect|express)\.\w+;\n/gm,
]

/** Copies the declarations of a package, and of those that they need, into one folder; relative to it they find each other. */
function copyTypes(name: string, root: string, folder: string, done = new Set<string>()): void {
  if (done.has(name)) return
  done.add(name)
  let text = readFileSync(join(root, 'node_modules/@types', name, 'index.d.ts'), 'utf8')
  if (name === 'cookies') {
    for (const part of NOT_OURS) {
      if (text.match(part)?.length !== 2) throw new Error(`@types/cookies has changed: look for ${part}`)
      text = text.replace(part, '')
    }
  }
  const needed = [...text.matchAll(REQUIRED)]
    .map(([, , from = '']) => from)
    .filter(from => !builtinModules.includes(from))
  for (const next of needed) copyTypes(next, root, folder, done)
  const own = text.replace(REQUIRED, (all, call, from) => (needed.includes(from) ? `${call}"./${from}.cjs"` : all))
  writeFileSync(join(folder, `${name}.d.cts`), own)
}

/** The declaration files that the entries lead to. */
function reachable(root: string): Set<string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const todo: string[] = []
  JSON.stringify(exports, (_key, value) => {
    if (typeof value === 'string' && value.endsWith('.d.ts')) todo.push(join(root, value))
    return value
  })
  const found = new Set<string>()
  for (let file = todo.pop(); file !== undefined; file = todo.pop()) {
    if (found.has(file)) continue
    found.add(file)
    for (const [, , , from = ''] of readFileSync(file, 'utf8').matchAll(IMPORTED)) {
      if (!from.startsWith('.')) continue
      const next = join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts'))
      if (existsSync(next)) todo.push(next)
    }
  }
  return found
}

/** Of the package in this folder, whose `dist` is compiled. */
export function bundleTypes(root: string): void {
  const dist = join(root, 'dist')
  const kept = reachable(root)
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const file = join(dist, name)
    if (name.endsWith('.d.ts') && !kept.has(file)) rmSync(file)
  }
  const types = join(dist, 'types')
  mkdirSync(types)
  copyTypes('koa', root, types)
  copyFileSync(join(root, 'node_modules/@types/koa/LICENSE'), join(types, 'LICENSE'))
  for (const file of kept) {
    const text = readFileSync(file, 'utf8')
    const koa = relative(dirname(file), join(types, 'koa.cjs')).replaceAll('\\', '/')
    const own = text.replace(IMPORTED, (all, before, quote, from) =>
      from === 'koa' ? `${before}${quote}${koa}${quote}` : all,
    )
    if (own !== text) writeFileSync(file, own)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) bundleTypes(fileURLToPath(new URL('..', import.meta.url)))
