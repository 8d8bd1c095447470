// Tests parts of the client commands: the token directory, stored logins, and parsing of typed values and URLs.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readField } from '../../cli/client/elicit.ts'
import { checkServerUrl, createLogins, tokenDirectory } from '../../cli/client/stored-logins.ts'
import { describeProgress } from '../../cli/client/terminal.ts'
import { readToolArguments } from '../../cli/client/tool-arguments.ts'
import { createIgnoredTools } from '../../cli/proxy/relay.ts'
import { isoTime } from '../../cli/text.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { testContext } from './run-command.ts'

after(removeFolders)

describe('directory of tokens', () => {
  it('is MCP_HOST_HOME, or else in the configuration folder of the user', () => {
    expect(tokenDirectory({ MCP_HOST_HOME: '/a', XDG_CONFIG_HOME: '/b' })).to.equal(join('/a', 'tokens'))
    expect(tokenDirectory({ XDG_CONFIG_HOME: '/b' })).to.equal(join('/b', 'mcp-host', 'tokens'))
    expect(tokenDirectory({ MCP_HOST_HOME: '' })).to.equal(join(homedir(), '.config', 'mcp-host', 'tokens'))
  })
})

describe('stored logins', () => {
  it('are found by any spelling of their URL, separate for each profile, and deleted at logout', async () => {
    const logins = createLogins(join(await makeFolder({}), 'tokens'))
    const login = { v: 1, url: 'http://EXAMPLE.com', grant: 'authorization_code' } as const
    expect(await logins.find(login.url, undefined)).to.equal(undefined)
    expect(await logins.list()).to.deep.equal([])
    await logins.save(login)
    await logins.save({ ...login, profile: 'work', clientId: 'a' })
    expect(await logins.find('http://example.com/', undefined)).to.deep.equal(login)
    expect((await logins.find('http://example.com/', 'work'))?.clientId).to.equal('a')
    expect(await logins.list()).to.have.length(2)
    await logins.remove({ url: 'http://example.com:80/', profile: 'work' })
    expect(await logins.list()).to.deep.equal([login])
  })

  it('are rejected in a file of another program', async () => {
    const directory = join(await makeFolder({}), 'tokens')
    const logins = createLogins(directory)
    await logins.save({ v: 2 as 1, url: 'http://example.com', grant: 'device' })
    expect(String(await rejectionOf(logins.find('http://example.com', undefined)))).to.match(
      /delete it and log in again/,
    )
  })
})

describe('an elicitation field', () => {
  for (const [schema, text, value] of [
    [{ type: 'string' }, '12', '12'],
    [{ type: 'number' }, '1.5', 1.5],
    [{ type: 'number' }, '', undefined],
    [{ type: 'integer' }, '1.5', undefined],
    [{ type: 'integer' }, '-3', -3],
    [{ type: 'boolean' }, 'Yes', true],
    [{ type: 'boolean' }, 'n', false],
    [{ type: 'boolean' }, 'maybe', undefined],
    [{ type: 'string', enum: ['a', 'b'] }, 'b', 'b'],
    [{ type: 'string', enum: ['a', 'b'] }, '2', 'b'],
    [{ type: 'string', enum: ['a', 'b'] }, '3', undefined],
    [{ type: 'string', enum: ['2', '1'] }, '2', '2'],
    [{ type: 'string', oneOf: [{ const: 'x', title: 'The x' }] }, '1', 'x'],
    [{ type: 'array', items: { type: 'string', enum: ['a', 'b', 'c'] } }, 'a, 3', ['a', 'c']],
    [{ type: 'array', items: { anyOf: [{ const: 'x', title: 'The x' }] } }, 'y', undefined],
    [{ type: 'array', items: { type: 'string', enum: ['a'] } }, '', []],
  ] as const) {
    it(`of ${JSON.stringify(schema)}: ${JSON.stringify(text)} is ${JSON.stringify(value) ?? 'no answer'}`, () => {
      expect(readField(text, schema)).to.deep.equal(value)
    })
  }
})

describe('arguments of a call', () => {
  it('are parsed by their types, and as JSON or text if any type is valid', async () => {
    const properties = { text: { type: ['string', 'null'] }, id: { type: 'string' }, object: { type: 'object' } }
    const read = (...given: string[]) => readToolArguments(given, { properties }, testContext())
    expect(await read('id=007', 'text=null', 'object={"a":1}')).to.deep.equal({
      id: '007',
      text: null,
      object: { a: 1 },
    })
    expect(await read('text=12')).to.deep.equal({ text: '12' })
    expect(await readToolArguments(['a=1', 'b=x', 'c='], undefined, testContext())).to.deep.equal({
      a: 1,
      b: 'x',
      c: '',
    })
    expect(String(await rejectionOf(read('object=[1]')))).to.contain('object must be of type object, not "[1]"')
    expect(String(await rejectionOf(readToolArguments(['[1]'], undefined, testContext())))).to.contain(
      '"[1]" is not an argument',
    )
  })
})

describe('numbers of a call', () => {
  const properties = { id: { type: 'integer' }, any: {}, text: { type: 'string' }, object: { type: 'object' } }
  const read = (...given: string[]) => readToolArguments(given, { properties }, testContext())

  for (const given of [
    'id=1915883588174806058',
    'any=1915883588174806058',
    'any=0.12345678901234567890123',
    'any=[1e400]',
    'object={"a":["1",{"b":-9007199254740993}]}',
    '{"text":"1","id":1915883588174806058}',
  ]) {
    it(`are refused if they would lose digits: ${given}`, async () => {
      expect(String(await rejectionOf(read(given)))).to.match(/would lose digits/)
    })
  }

  it('are sent as they are if JavaScript can hold them, and digits in strings always', async () => {
    const exact = '{"any":[9007199254740992,1.50,1e3,-0.1,0,100,1E-7,"1915883588174806058","\\"1e400"]}'
    expect(await read(exact)).to.deep.equal(JSON.parse(exact))
    expect(await read('text=1915883588174806058', 'any=x1915883588174806058')).to.deep.equal({
      text: '1915883588174806058',
      any: 'x1915883588174806058',
    })
  })
})

describe('text on stdout and stderr', () => {
  it('is escaped wherever it goes: lines and tabs stay on stdout, and one line of limited length is left on stderr', () => {
    const context = testContext()
    context.print('a\tb\r\nc\rd\u001b[2J\u202e')
    context.say(`a\nb\u001b[2J${'x'.repeat(1_000_000)}`)
    expect(context.text.stdout).to.equal('a\tb\nc\\u000dd\\u001b[2J\\u202e\n')
    expect(context.text.stderr).to.match(/^a\\u000ab\\u001b\[2Jx+…\n$/)
    expect(context.text.stderr.length).to.be.lessThan(11_000)
  })
})

describe('a time from outside', () => {
  it('is printed as ISO 8601, and as invalid if it is no date', () => {
    expect(isoTime(0)).to.equal('1970-01-01T00:00:00.000Z')
    for (const at of [1e20, -1e20, Number.NaN, Number.POSITIVE_INFINITY]) expect(isoTime(at)).to.equal(undefined)
  })
})

describe('--ignore-tool', () => {
  it('takes linear time for a long name and any number of stars', () => {
    const { isIgnored } = createIgnoredTools(['*a*a*a*a*a*b', 'rm*', 'la.ge'])
    const names = ['rm_all', 'rm\n', 'large', 'la.ge', 'xaaaaab', 'x'.repeat(1e6), 'a'.repeat(1e6)]
    expect(names.map(name => isIgnored({ name }))).to.deep.equal([true, true, false, true, true, false, false])
  })
})

describe('progress', () => {
  it('is a percentage if the total is known, and moves no cursor', () => {
    expect(describeProgress({ progress: 2, total: 3, message: 'a\u001b[2J' })).to.equal('2/3 (66 %)  a\\u001b[2J')
    expect(describeProgress({ progress: 7 })).to.equal('7')
    expect(describeProgress({ progress: 1, total: 0 })).to.equal('1/0')
  })
})

describe('the URL of a server', () => {
  for (const [given, url] of [
    ['localhost:3000/mcp', 'http://localhost:3000/mcp'],
    ['127.0.0.1:3000', 'http://127.0.0.1:3000'],
    ['[::1]:3000/', 'http://[::1]:3000/'],
    ['app.localhost', 'http://app.localhost'],
    ['a.b.localhost:3000', 'http://a.b.localhost:3000'],
    ['mcp.example.com/mcp', 'https://mcp.example.com/mcp'],
    ['build-host:8443', 'https://build-host:8443'],
    ['localhost.evil.example/', 'https://localhost.evil.example/'],
    ['127.0.0.1.evil.example', 'https://127.0.0.1.evil.example'],
    ['http://mcp.example.com', 'http://mcp.example.com'],
  ] as const) {
    it(`is ${url} where ${given} is given`, () => expect(checkServerUrl(given)).to.equal(url))
  }

  for (const given of [
    '',
    'clock',
    'ftp://example.com',
    'mailto:a@b.example',
    '/mcp',
    'javascript:alert(1)',
    'a b.example',
  ]) {
    it(`is invalid for ${JSON.stringify(given)}`, () => {
      expect(() => checkServerUrl(given)).to.throw('is not an http or https URL')
    })
  }
})
