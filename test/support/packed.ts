// Packs the repository as npm publishes it, with the build in `dist` if it is newer than the sources.
import { execFile } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '../..')
const SOURCES = ['build', 'core', 'plugins', 'client', 'remote', 'cli', 'package.json', 'tsconfig.build.json']

/** The environment of npm and of the installed CLI: the Node.js that runs the tests, and no loader. */
export const PACKAGE_ENV = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  NODE_OPTIONS: '',
}

const modified = (path: string): number => statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0

function isBuilt(): boolean {
  // Written by the last step: a failed build leaves other files, with missing declarations.
  const built = modified('dist/plugins/console/page/index.html')
  return SOURCES.every(source => {
    const files = source.includes('.') ? [''] : readdirSync(join(ROOT, source), { recursive: true, encoding: 'utf8' })
    return files.every(file => modified(join(source, file)) < built)
  })
}

/** Returns the path of the tarball, which is written to `folder`. Builds must not overlap: run one before tests in parallel. */
export async function packPackage(folder: string): Promise<string> {
  const args = ['pack', '--silent', '--pack-destination', folder, ...(isBuilt() ? ['--ignore-scripts'] : [])]
  await promisify(execFile)('npm', args, { cwd: ROOT, env: PACKAGE_ENV })
  return join(folder, (await readdir(folder)).find(name => /^mcp-host-\d.*\.tgz$/.test(name)) ?? '')
}
