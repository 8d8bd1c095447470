// `npm run release`: what is published, in `release/`: the tarball, and beside it sbom.cdx.json, all packages that an
// installation of it brings, as CycloneDX. It publishes nothing: `npm publish release/mcp-host-*.tgz` does, by hand or in CI.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const QUIET = ['--loglevel=error', '--no-audit', '--no-fund'] as const

const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, ...QUIET], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** The bill of materials of a packed package: what npm installs of it today, itself at the root. */
export function billOfMaterials(tarball: string): string {
  const outer = mkdtempSync(join(tmpdir(), 'mcp-host-sbom-'))
  try {
    // npm calls the root by the name of its folder.
    const folder = join(outer, 'mcp-host')
    mkdirSync(folder)
    execFileSync('tar', ['-xzf', resolve(tarball), '-C', folder, '--strip-components', '1', 'package/package.json'])
    const { name, version, license, dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version, license, dependencies }))
    npm(folder, 'install', '--ignore-scripts')
    return npm(folder, 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'library')
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
