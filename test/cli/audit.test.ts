// Tests `mcp-host audit`: results for valid and tampered audit logs, the sources of its secrets, and `who`, which
// resolves pseudonyms.
import { execFileSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { auditCommand } from '../../cli/audit.ts'
import { createPseudonyms } from '../../core/kernel/pseudonyms.ts'
import { createSecrets } from '../../core/kernel/secrets.ts'
import { StartError } from '../../core/plugin.ts'
import { lockFile } from '../../plugins/audit/file-lock.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { linesIn, startAudited } from '../plugins/audit/audited-host.ts'
import { stopHosts } from '../support/start-host.ts'
import { configText, runCli, stopAll } from './in-process.ts'
import { printedBy } from './run-command.ts'

after(removeFolders)
after(stopHosts)
after(stopAll)

/** Commas stand between those of MCP_HOST_SECRETS. */
const SECRET = 'a secret for tests without a comma in it'

async function madeAudit() {
  const host = await startAudited({ config: { secrets: [SECRET] } })
  await host.call('say')
  await host.close()
  return host
}

/** Runs the command. Returns its stdout and stderr, and the StartError that it throws. */
async function run(
  words: readonly string[],
  values: object = {},
  env: NodeJS.ProcessEnv = { MCP_HOST_SECRETS: SECRET },
): Promise<{ text: string; notes: string; error?: StartError }> {
  let error: unknown
  let notes = ''
  const text = await printedBy(
    async context => {
      await auditCommand.run({ ...values }, words, context).catch((thrown: unknown) => {
        error = thrown
      })
      notes = context.text.stderr
    },
    { env },
  )
  if (error !== undefined && !(error instanceof StartError)) throw error
  return { text, notes, ...(error !== undefined && { error }) }
}

describe('mcp-host audit', () => {
  it('verify reports the content of a file and of its folder', async () => {
    const { file, folder } = await madeAudit()
    const [last] = (await linesIn(file)).slice(-1)
    const { text, error } = await run(['verify', file], { head: [String(last?.['hash'])] })
    expect(error).to.equal(undefined)
    expect(text).to.match(
      /^chain {3}[\da-f]{16}\nfiles {3}1\nlines {3}3, seq 1 to 3\ntime .*\nsigned {2}hmac-sha256 .*[\da-f]{8}\nhead {4}[\da-f]{64}\nresult {2}intact$/,
    )
    expect((await run(['verify', folder])).text).to.equal(text)
  })

  it('verify exits 1 and names the first invalid record, or a missing head', async () => {
    const { file } = await madeAudit()
    const missing = await run(['verify', file], { head: ['0'.repeat(64)] })
    expect(missing.error?.exitCode).to.equal(1)
    expect(String(missing.error)).to.match(/--head 0+/)
    expect(missing.text).to.match(/result {2}BROKEN/)
    await writeFile(file, (await readFile(file, 'utf8')).replace('"name":"say"', '"name":"ask"'))
    const { text, error } = await run(['verify', file])
    expect(text).to.match(/result {2}BROKEN$/)
    expect(String(error)).to.include(`${file}:2`)
    expect(error?.exitCode).to.equal(1)
  })

  it('verify without the secrets of the host reports that, and changes nothing', async () => {
    const { file } = await madeAudit()
    const none = await run(['verify', file], {}, {})
    expect(none.text).to.match(/result {2}/)
    expect(none.error?.exitCode).to.equal(3)
    expect(String(none.error)).to.match(/[\da-f]{8}[\s\S]*MCP_HOST_SECRETS/)
    const other = await run(['verify', file], {}, { MCP_HOST_SECRETS: 'another secret for tests without a comma' })
    expect(other.error?.exitCode).to.equal(3)
    expect(String(other.error)).to.match(/1 other keys\n/)
    await writeFile(file, (await readFile(file, 'utf8')).replace(/"key":"[^"]*"/, '"key":"\\u001b[2J"'))
    expect(String((await run(['verify', file])).error)).to.match(/signed with key the name is invalid/)
  })

  it('verify reads the secrets from the config of the host and from its env file', async () => {
    const { file } = await madeAudit()
    const folder = await makeFolder({
      'mcp.config.json': JSON.stringify({ secrets: [`${SECRET}\n`] }),
      'plain.config.mjs': 'export default {}',
      'plain.env': `MCP_HOST_SECRETS="${SECRET}"\n`,
    })
    const config = join(folder, 'mcp.config.json')
    expect((await run(['verify', file], { config }, {})).error).to.equal(undefined)
    const values = { config: join(folder, 'plain.config.mjs'), 'env-file': [join(folder, 'plain.env')] }
    expect((await run(['verify', file], values, {})).error).to.equal(undefined)
  })

  it('verify skips locks, and reports them', async () => {
    const { file } = await madeAudit()
    const lock = await lockFile(file)
    try {
      const { text, notes, error } = await run(['verify', file, `${file}.lock`])
      expect(error).to.equal(undefined)
      expect(notes).to.match(/^.*\.lock: skipped/)
      expect(text).to.match(/result {2}intact/)
      const only = await run(['verify', `${file}.lock`])
      expect(`${only.error?.exitCode} ${only.error?.message}`).to.match(/^2 no audit file given/)
    } finally {
      await lock.release()
    }
  })

  it('verify does not wait for a pipe without a writer', async () => {
    const { folder } = await madeAudit()
    const pipe = join(folder, 'x.jsonl')
    execFileSync('mkfifo', [pipe])
    const { text, notes, error } = await run(['verify', folder])
    expect(error).to.equal(undefined)
    expect(notes).to.match(/^.*x\.jsonl: skipped/)
    expect(text).to.match(/result {2}intact/)
    const only = await run(['verify', pipe])
    expect(`${only.error?.exitCode} ${only.error?.message}`).to.match(/^2 .*x\.jsonl/)
  })

  it('verify rejects paths that are no files, and files that are no audit log', async () => {
    const folder = await makeFolder({ 'long.jsonl': 'x'.repeat(10 * 1024 * 1024) })
    const told = async (...words: string[]) => {
      const { error } = await run(words)
      return `${error?.exitCode} ${error?.message}`
    }
    expect(await told('verify')).to.match(/^2 FILE.*mcp-host.*FILE/)
    expect(await told('verify', join(folder, 'gone'))).to.match(/^2 .*gone/)
    expect(await told('verify', await makeFolder({}))).to.match(/^2 .*\*\.jsonl file$/)
    expect(await told('verify', folder)).to.match(/^1[\s\S]*long\.jsonl:1/)
    expect(await told('check', folder)).to.match(/^2 unknown audit command "check".*mcp-host.*FILE/)
  })

  it('who prints the pseudonym', async () => {
    const { text } = await run(['who', 'ada'], { issuer: 'https://login.example' })
    const pseudonyms = createPseudonyms(createSecrets([SECRET]).keys('records'))
    expect(text).to.equal(pseudonyms.user({ issuer: 'https://login.example', subject: 'ada' }))
    expect((await run(['who'])).error?.message).to.match(/^SUBJECT/)
  })

  it('does not disturb explain next to a running host', async () => {
    const folder = await makeFolder({
      'mcp.config.mjs': configText({
        before: `const login = definePlugin({ provides: ['user'], setup: host => host.authenticate((ctx, next) => {
          ctx.state.user = { subject: 'ada', scopes: [], roles: [], claims: {} }
          return next()
        }) })()`,
        plugins: 'audit: {}, login',
      }),
    })
    const lock = await lockFile(join(folder, 'audit.jsonl'))
    const { stdout, stderr } = await runCli(['explain', '--token', 'any'], folder)
    await lock.release()
    expect(stderr).to.equal('')
    expect(stdout).to.match(/verified by the config's own plugins/)
    expect(await readdir(folder)).not.to.include('audit.jsonl')
  })

  it('runs as a process', async () => {
    const { folder } = await madeAudit()
    const { code, stdout, stderr } = await runCli(['audit', 'verify', '.'], folder, { MCP_HOST_SECRETS: SECRET })
    expect(stderr).to.equal('')
    expect(stdout).to.match(/result {2}intact\n$/)
    expect(code).to.equal(0)
    const keyless = await runCli(['audit', 'verify', '.'], folder, { MCP_HOST_SECRETS: '' })
    expect(keyless.stderr).to.match(/^mcp-host: error \w+: the audit cannot be verified:/)
    expect(keyless.code).to.equal(3)
  })
})
