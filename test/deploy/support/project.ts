// A project made by `mcp-host init` of the packed package, with the files of examples/deploy.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PACKAGE_ENV, packPackage } from '../../support/packed.ts'

const ROOT = join(import.meta.dirname, '../../..')
const run = promisify(execFile)

export interface DeployedProject {
  readonly folder: string
  /** The package, packed: beside the project, where its package-lock.json finds it. */
  readonly tarball: string
}

/** The lock file is written, and nothing is installed. */
export async function makeProject(outer: string): Promise<DeployedProject> {
  const tarball = await packPackage(outer)
  const folder = join(outer, 'project')
  await mkdir(folder)
  const cli = join(ROOT, 'dist/cli/bin.js')
  await run(process.execPath, [cli, 'init', folder, '--yes', '--name', 'my-server'], { cwd: outer, env: PACKAGE_ENV })
  // As the package has them, for that is where an operator takes them from.
  await run('tar', ['-xzf', tarball, '-C', outer, 'package/examples/deploy'])
  const deploy = join(outer, 'package/examples/deploy')
  await cp(join(deploy, 'mcp.config.ts'), join(folder, 'mcp.config.ts'))
  await cp(join(deploy, 'docker'), folder, { recursive: true })
  // What examples/deploy/docker/README.md has them install beside it.
  const more = /^npm i [^#\n]+/m.exec(await readFile(join(deploy, 'docker/README.md'), 'utf8'))?.[0] ?? ''
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  manifest.dependencies['mcp-host'] = `file:../${tarball.slice(outer.length + 1)}`
  for (const [, name, version] of more.matchAll(/(\S+)@(\d+)/g)) {
    manifest.dependencies[name ?? ''] = `^${version}`
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest, null, 2))
  const install = ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', install, { cwd: folder, env: PACKAGE_ENV })
  return { folder, tarball }
}
