// What an installation of the packed package weighs, and what each optional package adds to it: `npx tsx
// build/measure-install.ts` packs, installs in empty folders and prints the tables of docs/dependencies.md.
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

export interface Installed {
  /** Of all files; one that has two names is counted once. */
  readonly bytes: number
  readonly packages: readonly InstalledPackage[]
}

export interface InstalledPackage {
  readonly name: string
  readonly version: string
  readonly licence: string
}

/** What needs optional packages, in the words of docs/dependencies.md, and which ones. Every optional peer is in one of them. */
export const CHOICES: ReadonlyArray<readonly [what: string, names: readonly string[]]> = [
  ['plugin `metrics`', ['prom-client']],
  [
    'plugins `cluster-redis`, `session-store-redis`, `event-store-redis`, `change-bus-redis`, `grant-store-redis`, `task-store-redis`',
    ['@redis/client'],
  ],
  ["plugin `rate-limit` with `store: 'redis'`", ['@redis/client', 'rate-limiter-flexible']],
  ['plugins `auth-bridge`, `dev-auth-server`', ['oidc-provider']],
  ['plugin `tracing`', ['@opentelemetry/api']],
  ['verbs `call`, `list`; clients of `mcp-host/testing`', ['@modelcontextprotocol/client']],
  ['`--log-format pretty`, and logs at a terminal', ['pino-pretty']],
  ['questions of the verb `init`', ['@clack/prompts']],
  ['`--proxy`, `createProxyFetch`', ['undici']],
  ['TypeScript that is compiled', ['@types/node']],
]

/** Bytes of all files below a folder; one that has two names is counted once. */
export function sizeOf(folder: string, seen = new Set<number>()): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += sizeOf(path, seen)
    else if (entry.isFile()) {
      const { ino, size } = lstatSync(path)
      if (!seen.has(ino)) bytes += size
      seen.add(ino)
    }
  }
  return bytes
}

const isFolder = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** What the package in a folder says of itself. */
export function manifestOf(folder: string): InstalledPackage {
  const { name, version, license, licenses } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const licence = license?.type ?? license ?? licenses?.map(({ type }: { type: string }) => type).join(' OR ') ?? 'none'
  return { name, version, licence }
}

/** The packages in a `node_modules`, and in those of its packages. */
function packagesIn(modules: string): InstalledPackage[] {
  if (!isFolder(modules)) return []
  const names = readdirSync(modules).flatMap(name =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map(own => `${name}/${own}`) : [name],
  )
  return names.flatMap(folder => {
    if (folder.startsWith('.')) return []
    return [manifestOf(join(modules, folder)), ...packagesIn(join(modules, folder, 'node_modules'))]
  })
}

/** What is in the `node_modules` of a folder. */
export const measure = (folder: string): Installed => ({
  bytes: sizeOf(join(folder, 'node_modules')),
  packages: packagesIn(join(folder, 'node_modules')),
})

/** Installs into a new folder as production does: without development's packages. */
export function installAlone(folder: string, packages: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const args = ['install', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error', ...packages]
  execFileSync('npm', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** `npm i` of our range of an optional peer. */
export function wantedOf(name: string): string {
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return `${name}@${peerDependencies[name]}`
}

const inMegabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)

/** Packages by licence: `- MIT: accepts, ajv, ...` */
export function licenceLines({ packages }: Installed): string[] {
  const licences = [...new Set(packages.map(({ licence }) => licence))].sort()
  return licences.map(one => {
    const names = [...new Set(packages.filter(({ licence }) => licence === one).map(({ name }) => name))]
    return `- ${one}: ${names.sort().join(', ')}`
  })
}

function printTables(): void {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-measure-'))
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const tarball = join(folder, readdirSync(folder).find(name => name.endsWith('.tgz')) ?? '')
    installAlone(join(folder, 'bare'), [tarball])
    const bare = measure(join(folder, 'bare'))
    console.log('| What | `npm i` | MB | Packages |\n|---|---|---|---|')
    console.log(`| \`mcp-host\` | \`mcp-host\` | ${inMegabytes(bare.bytes)} | ${bare.packages.length} |`)
    for (const [index, [what, names]] of CHOICES.entries()) {
      const place = join(folder, `with-${index}`)
      installAlone(place, [tarball, ...names.map(wantedOf)])
      const { bytes, packages } = measure(place)
      const more = `+${inMegabytes(bytes - bare.bytes)} | +${packages.length - bare.packages.length}`
      console.log(`| ${what} | ${names.map(name => `\`${name}\``).join(' ')} | ${more} |`)
    }
    const all = join(folder, 'all')
    installAlone(all, [tarball, ...new Set(CHOICES.flatMap(([, names]) => names).map(wantedOf))])
    const { bytes, packages } = measure(all)
    console.log(`| all of it | | ${inMegabytes(bytes)} | ${packages.length} |`)
    console.log(`\n${licenceLines(measure(all)).join('\n')}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) printTables()
