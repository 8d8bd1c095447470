// Packs the repository as npm publishes it, with the build in `dist` if it is newer than the sources.
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { chmod, copyFile, mkdir, readFile, symlink } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const { dependencies, files, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const SOURCES = ['build', 'core', 'plugins', 'client', 'remote', 'cli', 'package.json', 'tsconfig.build.json']
/** Written by the last step of a build. A failed build leaves other files, with missing declarations. */
const LAST_BUILT = 'dist/plugins/console/page/index.html'
/** Files of the package, which `npm pack` reads. */
const PACKED: readonly string[] = ['package.json', ...files.filter((name: string) => !/[!*]/.test(name))]
/** Cached for other test files. */
const TARBALL = 'node_modules/.cache/mcp-host-packed.tgz'

/** The environment of npm and of the installed CLI: the Node.js that runs the tests, and no loader. */
export const PACKAGE_ENV = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  NODE_OPTIONS: '',
}

const modified = (path: string): number => statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Returns true if a file is newer than the others, including all files in folders. */
function isNewer(file: string, others: readonly string[]): boolean {
  const since = modified(file)
  return others.every(other => {
    const isFolder = statSync(join(ROOT, other)).isDirectory()
    const inside = isFolder ? readdirSync(join(ROOT, other), { recursive: true, encoding: 'utf8' }) : []
    return ['', ...inside].every(name => modified(join(other, name)) < since)
  })
}

/** Returns true if the build in `dist` is complete and newer than the sources. */
export const isBuilt = (): boolean => isNewer(LAST_BUILT, SOURCES)

/** Returns the path of the tarball, which is written to `folder`. Builds must not overlap: run one before tests in parallel. */
export async function packPackage(folder: string): Promise<string> {
  const name = `mcp-host-${version}.tgz`
  const hasBuild = isBuilt()
  if (!hasBuild || !isNewer(TARBALL, PACKED)) {
    const made = join(ROOT, `${TARBALL}.${process.pid}`)
    mkdirSync(made, { recursive: true })
    const args = ['pack', '--silent', '--pack-destination', made, ...(hasBuild ? ['--ignore-scripts'] : [])]
    await run('npm', args, { cwd: ROOT, env: PACKAGE_ENV })
    renameSync(join(made, name), join(ROOT, TARBALL))
    rmSync(made, { recursive: true })
  }
  await copyFile(join(ROOT, TARBALL), join(folder, name))
  return join(folder, name)
}

async function linkPackages(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const link = join(folder, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), link)
  }
}

/** Unpacks a package into the `node_modules` of a project. */
export async function unpackInto(project: string, name: string, tarball: string): Promise<string> {
  const folder = join(project, 'node_modules', name)
  await mkdir(folder, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components', '1'])
  return folder
}

/**
 * Installs the packed package into a project, and links the packages of both package.json files to those of the repository.
 * An undeclared dependency is then an error.
 */
export async function linkDependencies(project: string, tarball: string): Promise<void> {
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
  const declared = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })
  await linkPackages(
    project,
    declared.filter(name => name !== 'mcp-host'),
  )
  const host = await unpackInto(project, 'mcp-host', tarball)
  await linkPackages(host, Object.keys(dependencies))
  const bin = join(project, 'node_modules/.bin')
  await mkdir(bin)
  await chmod(join(host, 'dist/cli/bin.js'), 0o755)
  await symlink(join(host, 'dist/cli/bin.js'), join(bin, 'mcp-host'))
  for (const name of ['tsc', 'tsx']) await symlink(join(ROOT, 'node_modules/.bin', name), join(bin, name))
}
