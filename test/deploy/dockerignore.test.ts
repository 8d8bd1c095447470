// Tests that the .dockerignore of examples/deploy/docker excludes secrets and deployment files and keeps the server's
// files.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { expect } from 'chai'
import { readIgnored } from './support/image.ts'
import { readExample } from './support/processes.ts'

const EXAMPLES = new URL('../../examples/deploy/', import.meta.url).pathname

/** Names that are secret, or the state of a server, wherever they are. */
const NOWHERE = [
  ...['.env', '.env.production', '.env.local', 'prod.env', 'mcp-host.env'],
  ...['.npmrc', '.yarnrc.yml', '.git/config', '.ssh/id_ed25519', '.aws/credentials', '.vscode/mcp.json'],
  ...['key.pem', 'server.key', 'client.p12', 'client.pfx'],
  ...['sessions.db', 'sessions.db-wal', 'sessions.db-shm', 'notes.sqlite', 'notes.sqlite-journal'],
  ...['audit.jsonl', 'audit.1.jsonl', 'audit.2026-11-22T15-00-00-123Z.jsonl', 'audit.jsonl.lock', 'server.log'],
  ...['.mcp-host/known', 'node_modules/one/index.js'],
]
const FOLDERS = ['', 'tools/', 'packages/one/two/']
/** The same at the top alone: elsewhere they may be modules, or what a resource reads. */
const AT_THE_TOP = [
  ...[
    'secrets',
    'state/secrets',
    'state/any',
    'test/one.test.ts',
    'kubernetes/config.yaml',
    'README.md',
    'one-1.0.0.tgz',
  ],
  ...['compose.override.yaml', 'compose.prod.yml', 'docker-compose.yml', 'Dockerfile.old'],
]
const SERVED = [
  ...['mcp.config.ts', 'package.json', 'package-lock.json', 'tsconfig.json', 'tools/one.ts', 'tools/deep/er/two.ts'],
  ...[
    'resources/guide.md',
    'resources/numbers.jsonl',
    'tools/environment.ts',
    'tools/keys.ts',
    'tools/secrets/list.ts',
  ],
  ...['prompts/state.ts', 'tools/state/machine.ts', 'tools/audit.ts', 'tools/test/kit.ts', 'data/compose.yaml'],
]

let folder: string
const write = (path: string) => {
  mkdirSync(join(folder, dirname(path)), { recursive: true })
  writeFileSync(join(folder, path), 'x')
}

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'mcp-host-context-'))
  // Beside what operators copy: README.md of the folder says so.
  cpSync(join(EXAMPLES, 'docker'), folder, { recursive: true })
  cpSync(join(EXAMPLES, 'kubernetes'), join(folder, 'kubernetes'), { recursive: true })
})
after(() => rmSync(folder, { recursive: true, force: true }))

const LEFT_OUT = [...FOLDERS.flatMap(place => NOWHERE.map(name => `${place}${name}`)), ...AT_THE_TOP]

const keptBy = (text: string) => {
  const ignored = readIgnored(text)
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath, entry.name)))
  return paths.filter(path => !ignored(path)).sort()
}

describe('examples/deploy/docker/.dockerignore', () => {
  const text = readExample('deploy/docker/.dockerignore')

  it(`excludes ${LEFT_OUT.length} files and its own folder, keeps ${SERVED.length}`, () => {
    for (const path of [...LEFT_OUT, ...SERVED]) write(path)
    expect(keptBy(text)).to.deep.equal([...SERVED].sort())
  })

  it('keeps nested .pem files without the `**/` pattern', () => {
    const found = keptBy(text.replace('**/*.pem\n', '*.pem\n')).filter(path => !SERVED.includes(path))
    expect(found).to.deep.equal(['packages/one/two/key.pem', 'tools/key.pem'])
  })
})
