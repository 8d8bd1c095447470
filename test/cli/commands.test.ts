// Tests all commands except `start`: help, versions, and errors for unknown commands and options.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { readArguments } from '../../cli/command.ts'
import { schemaText } from '../../cli/schema.ts'
import { tasksCommand } from '../../cli/tasks.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { configText, runCli, stopAll } from './in-process.ts'
import { ROOT } from './running-command.ts'

after(removeFolders)
after(stopAll)

const USAGE = /^Usage: mcp-host <command> \[options\]$/m
const SEE_HELP = /^Run mcp-host --help for a list of commands\.$/m
const USAGE_OF_START = /^Usage: mcp-host start \[options\]$/m

describe('mcp-host check', () => {
  it('prints what the config serves, listens nowhere, and exits 0', async () => {
    const busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const { port } = busy.address() as AddressInfo
    const folder = await makeFolder({ 'mcp.config.mjs': configText({ http: `{ port: ${port} }` }) })
    const { code, stdout, stderr } = await runCli(['check'], folder)
    busy.close()
    expect(stdout).to.match(
      /^config mcp\.config\.mjs\n\nRoute +Serves +Toolsets +Protocol versions +Access\n\/ +2 tools +first, second +2024-11-05 to 2026-07-28 +open\n/,
    )
    expect(stdout).to.match(/\n\nThe config is valid\.\n$/)
    expect(stderr).to.equal('')
    expect(code).to.equal(0)
  })

  it('reports problems of the file that --config names, and exits 2', async () => {
    const folder = await makeFolder({ 'other.json': '{"server":{"name":"a"},"toolsets":{},"routes":{}}' })
    const { code, stdout, stderr } = await runCli(['check', '--config', 'other.json'], folder)
    expect(stderr).to.match(/^mcp-host: error \w+: The config has 2 problems\.\n\nother\.json:1 /)
    expect(stdout).to.equal('')
    expect(code).to.equal(2)
  })
})

describe('errors that a config throws', () => {
  it('print no control characters, as text and as complete JSON', async () => {
    const thrown = '\u001b[2J\u009b31m\u202e'
    const text = `throw new Error(${JSON.stringify(`${thrown} first\n\tsecond`)})`
    const folder = await makeFolder({ 'mcp.config.mjs': text })
    const ends = await Promise.all(
      [['check'], ['check', '--verbose'], ['check', '--format', 'json']].map(args => runCli(args, folder)),
    )
    for (const { stdout, stderr } of ends) {
      expect(`${stdout}${stderr}`.replace(/[\n\t]/g, ''))
        .to.match(/u009b/)
        .and.not.to.match(/[\p{Cc}\u202e]/u)
    }
    expect(JSON.parse(ends[2]?.stdout ?? '').problems[0].message).to.contain(thrown)
  })
})

describe('mcp-host schema', () => {
  it('prints the config schema with every built-in plugin', async () => {
    const { code, stdout } = await runCli(['schema'], await makeFolder({}))
    const { properties } = JSON.parse(stdout)
    expect(properties.plugins.properties).to.include.keys('transport-streamable', 'health')
    expect(code).to.equal(0)
  })

  it('--write writes it to a file and prints nothing', async () => {
    const folder = await makeFolder({})
    const { code, stdout } = await runCli(['schema', '--write', 'schema.json'], folder)
    expect(await readFile(join(folder, 'schema.json'), 'utf8')).to.equal(schemaText())
    expect(stdout).to.equal('')
    expect(code).to.equal(0)
  })

  it('reports a file that cannot be written in one line', async () => {
    const { code, stderr } = await runCli(['schema', '--write', 'none/schema.json'], await makeFolder({}))
    expect(stderr).to.match(/^mcp-host: error \w+: none\/schema\.json cannot be written: ENOENT.*\n$/)
    expect(code).to.equal(1)
  })

  it('generated the current config.schema.json (npm run schema)', () => {
    expect(readFileSync(join(ROOT, 'config.schema.json'), 'utf8')).to.equal(schemaText())
  })
})

describe('mcp-host', () => {
  it('accepts values that begin with a dash', () => {
    const { values, positionals } = readArguments('tasks', tasksCommand, ['localhost:3000', '--cancel', '-Ab3'])
    expect([values['cancel'], positionals]).to.deep.equal(['-Ab3', ['localhost:3000']])
  })

  it('help CODE prints the message of a code, and its explanation as plain text', async () => {
    const [known, unknown] = await Promise.all(['MH2304', 'MH9999'].map(code => runCli(['help', code], process.cwd())))
    expect(known?.stdout)
      .to.match(/^MH2304\n.+\n\n.*\breason\b/)
      .and.not.match(/[\\`]/)
    expect(known?.code).to.equal(0)
    expect(unknown?.code).to.equal(2)
    const { stdout } = await runCli(['help', 'mh1004'], process.cwd(), { npm_command: 'exec' })
    expect(stdout)
      .to.match(/^MH1004\n.+Config files.+\n\n/)
      .and.include('npx mcp-host check')
    const { stdout: logged } = await runCli(['help', 'MH2946'], process.cwd())
    expect(logged).to.include('No action required').and.not.include('For an error')
  })

  it('help KIND prints the table row of an error kind or a code of the client', async () => {
    const help = (kind: string) => runCli(['help', kind], process.cwd())
    const [timeout, lost, unknown] = await Promise.all(['login_timeout', 'nodeLost', 'no_such_kind'].map(help))
    expect(timeout).to.include({ code: 0 })
    expect(timeout?.stdout).to.match(
      /^login_timeout\nThe login was not completed\n\nDocumentation:\n {2}.*client\.md\n$/,
    )
    expect(lost?.stdout).to.match(/^nodeLost\n200\n-32603\nThe node stopped.*\nRepeat the request if that is safe\n/)
    expect(unknown).to.include({ code: 2, stdout: '' })
  })

  it('--version prints the version of package.json', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const { code, stdout } = await runCli(['--version'], await makeFolder({}))
    expect([stdout, code]).to.deep.equal([`${version}\n`, 0])
  })

  it('--help, like no command at all, prints every command in its group', async () => {
    const folder = await makeFolder({})
    const [asked, bare] = await Promise.all([runCli(['--help'], folder), runCli([], folder)])
    expect(asked.stdout).to.match(USAGE)
    const [, serve = '', check = '', review = '', monitor = '', call = ''] =
      /^Serve\n([\s\S]*)^Check\n([\s\S]*)^Review\n([\s\S]*)^Monitor\n([\s\S]*)^Connect\n([\s\S]*)^Shell\n {2}completion /m.exec(
        asked.stdout,
      ) ?? []
    const commandsOf = (group: string) => [...group.matchAll(/^ {2}(\w+) /gm)].map(([, verb]) => verb)
    expect(commandsOf(serve)).to.deep.equal(['start', 'dev', 'stdio'])
    expect(commandsOf(check)).to.deep.equal(['openapi', 'check', 'explain', 'schema'])
    expect(commandsOf(review)).to.deep.equal(['lock', 'accept', 'diff', 'audit'])
    expect(commandsOf(monitor)).to.deep.equal(['report', 'tasks'])
    expect(commandsOf(call)).to.deep.equal([
      'list',
      'call',
      'connect',
      'login',
      'logout',
      'status',
      'token',
      'proxy',
      'doctor',
    ])
    expect([asked.code, asked.stderr]).to.deep.equal([0, ''])
    expect(bare).to.deep.equal(asked)
  })

  it('--help after or before a command prints its arguments, options and an example', async () => {
    const folder = await makeFolder({})
    const [after, before] = await Promise.all([
      runCli(['explain', '--help'], folder),
      runCli(['-h', 'explain', '--route', '/a'], folder),
    ])
    expect(after.stdout).to.match(/^Usage: mcp-host explain \[options\]$/m)
    expect(after.stdout)
      .to.match(/^ +-c, --config <file>\s+Config file/m)
      .and.to.match(/^ +--route <path>\s+Route path/m)
      .and.to.match(/^Example\n {2}mcp-host explain --route /m)
    for (const line of after.stdout.split('\n')) expect(line.length).to.be.at.most(80)
    expect(after.stdout).not.to.contain('--redirect-port')
    expect(before).to.deep.equal(after)
    expect(after.code).to.equal(0)
  })

  for (const [what, args, message, usage] of [
    ['an unknown command', ['constructor'], 'unknown command "constructor"', SEE_HELP],
    ['a mistyped command', ['strat'], 'unknown command "strat"; did you mean "start"?', SEE_HELP],
    ['an option without a command', ['--json'], "unknown option '--json'; give a command first", SEE_HELP],
    ['an unknown option', ['start', '--zzzz', '1'], "unknown option '--zzzz' of start", USAGE_OF_START],
    [
      'a mistyped option',
      ['start', '--confg=a'],
      "unknown option '--confg' of start; did you mean '--config'?",
      USAGE_OF_START,
    ],
    ["another command's option", ['start', '--interval', '1'], "unknown option '--interval' of start", USAGE_OF_START],
    ['an option without its value', ['start', '--config'], "option '--config <file>' requires a value", USAGE_OF_START],
    ['an option for a value', ['start', '-c', '--verbose'], "option '-c <file>' requires a value", USAGE_OF_START],
    [
      'a value that is none of the choices',
      ['start', '--log-format=pritty'],
      '--log-format is "pritty"; give one of json, pretty; did you mean "pretty"?',
      USAGE_OF_START,
    ],
    ['a value of a switch', ['start', '--verbose=1'], "option '--verbose' takes no value", USAGE_OF_START],
    ['a second command', ['start', 'check'], 'unexpected "check"', USAGE_OF_START],
    ['a missing argument', ['login'], 'URL is missing', /^Usage: mcp-host login URL \[options\]$/m],
  ] as const) {
    it(`answers ${what} with the usage on stderr, and exits 2`, async () => {
      const { code, stdout, stderr } = await runCli(args, await makeFolder({ 'mcp.config.mjs': configText() }))
      expect(stderr.startsWith(`mcp-host: error MH3001: ${message}\n`), stderr).to.equal(true)
      expect(stderr).to.match(usage)
      expect(stdout).to.equal('')
      expect(code).to.equal(2)
    })
  }
})
