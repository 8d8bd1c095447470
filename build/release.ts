// `npm run release`: writes the tarball and its bill of materials, `sbom.cdx.json`, into `release/`. It publishes nothing.
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--loglevel=error'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

/** CycloneDX of a production installation, in the versions of the lock file. */
export function billOfMaterials(): string {
  const outer = mkdtempSync(join(tmpdir(), 'mcp-host-sbom-'))
  try {
    // npm names the root component after its folder.
    const folder = join(outer, 'mcp-host')
    mkdirSync(folder)
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(ROOT, file), join(folder, file))
    // `npm sbom --omit=dev` leaves out packages that development uses too (npm 11.19).
    npm(folder, 'pkg', 'delete', 'devDependencies')
    npm(folder, 'install', '--package-lock-only', '--no-audit')
    return npm(folder, 'sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=library')
  } finally {
    rmSync(outer, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = join(ROOT, 'release')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  npm(ROOT, 'pack', '--silent', '--pack-destination', folder)
  writeFileSync(join(folder, 'sbom.cdx.json'), billOfMaterials())
  console.log(readdirSync(folder).join('\n'))
}
