// `npm run release`: what is published, in `release/`: the tarball, and beside it sbom.cdx.json, all packages that an
// installation of it brings and those that it has in it, as CycloneDX. It publishes nothing: `npm publish release/mcp-host-*.tgz` does, by hand or in CI.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundledIn } from './bundle-dependencies.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const QUIET = ['--loglevel=error', '--no-audit', '--no-fund'] as const

const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, ...QUIET], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

interface Component {
  readonly 'bom-ref': string
  readonly purl: string
  readonly properties?: readonly unknown[]
}

interface Bill {
  readonly metadata: { readonly component: Component }
  readonly components: Component[]
  readonly dependencies: Array<{ readonly ref: string; readonly dependsOn: string[] }>
}

const sbom = (folder: string, ...more: string[]): string =>
  npm(folder, 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'library', ...more)

/** Adds the packages that are in the files of the package in this folder, as our lock file has them. */
function addBundled(bill: Bill, folder: string): Bill {
  const known = new Set(bill.components.map(({ purl }) => purl))
  const ours: Bill = JSON.parse(sbom(ROOT, '--package-lock-only'))
  const own = bill.dependencies.find(({ ref }) => ref === bill.metadata.component['bom-ref'])
  for (const { name, version } of bundledIn(folder)) {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
    const found = ours.components.find(component => component.purl === purl)
    if (!found || !own) throw new Error(`the lock file has no ${name}@${version}: install, and build again`)
    const ref = found['bom-ref']
    if (!own.dependsOn.includes(ref)) own.dependsOn.push(ref)
    if (known.has(purl)) continue
    bill.components.push({ ...found, properties: [{ name: 'cdx:npm:package:bundled', value: 'true' }] })
    bill.dependencies.push({ ref, dependsOn: [] })
  }
  return bill
}

/** The bill of materials of a packed package: what npm installs of it today and what is in it, itself at the root. */
export function billOfMaterials(tarball: string): string {
  const outer = mkdtempSync(join(tmpdir(), 'mcp-host-sbom-'))
  try {
    // npm calls the root by the name of its folder.
    const folder = join(outer, 'mcp-host')
    mkdirSync(folder)
    const members = ['package/package.json', 'package/dist/licenses.txt']
    execFileSync('tar', ['-xzf', resolve(tarball), '-C', folder, '--strip-components', '1', ...members])
    const { name, version, license, dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version, license, dependencies }))
    npm(folder, 'install', '--ignore-scripts')
    return JSON.stringify(addBundled(JSON.parse(sbom(folder)), folder), undefined, 2)
  } finally {
    rmSync(outer, { recursive: true, force: true })
  }
}

function release(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  npm(ROOT, 'pack', '--silent', '--pack-destination', folder)
  const tarball = join(folder, readdirSync(folder).find(name => name.endsWith('.tgz')) ?? '')
  writeFileSync(join(folder, 'sbom.cdx.json'), billOfMaterials(tarball))
  console.log(readdirSync(folder).join('\n'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) release(join(ROOT, 'release'))
