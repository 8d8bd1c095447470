// Tests URI templates: matching, limits and rejected templates.
import { expect } from 'chai'
import fc from 'fast-check'
import { MAX_URI, MAX_WATCHED_BYTES, WATCH_COST } from '../../core/mcp/client-limits.ts'
import { compileUriTemplate } from '../../core/mcp/definitions/uri-template.ts'

const match = (template: string, uri: string) => compileUriTemplate(template).match(uri)
const encodeReserved = (value: string) => encodeURI(value).replace(/%5B/g, '[').replace(/%5D/g, ']')
const encode = (value: string) => encodeURIComponent(value).replace(/[!'()*]/g, c => `%${c.charCodeAt(0).toString(16)}`)

describe('URI template matching', () => {
  const cases: [template: string, uri: string, values: Record<string, string> | undefined][] = [
    ['clock://now', 'clock://now', {}],
    ['clock://now', 'clock://now/', undefined],
    ['users://{id}/profile', 'users://42/profile', { id: '42' }],
    ['users://{id}/profile', 'users:///profile', undefined],
    ['users://{id}', 'users://a%20b%C3%A9', { id: 'a bé' }],
    ['users://{id}', 'users://a%2', undefined],
    ['users://{id}', 'users://%ff', undefined],
    ['users://{id}', 'users://a/b', undefined],
    ['users://{id}', 'users://a?b', undefined],
    ['users://{id}', 'users://a,b', { id: 'a,b' }],
    ['users://{id*}', 'users://a,b', { id: 'a,b' }],
    ['map://{x,y}', 'map://1,2', { x: '1', y: '2' }],
    ['map://{x,y}', 'map://1,2,3', undefined],
    ['map://{x,y}', 'map://1', undefined],
    ['v://{name}.{ext}', 'v://a.tar.gz', { name: 'a.tar', ext: 'gz' }],
    ['v://{a}{b}', 'v://xyz', { a: 'xy', b: 'z' }],
    ['file:///{+path}', 'file:///a/b%20c.txt', { path: 'a/b c.txt' }],
    ['repo://{+path}/blob/{name}', 'repo://a/blob/b/blob/c', { path: 'a/blob/b', name: 'c' }],
    ['repo://{+path}/meta.json', 'repo://a/meta.json/meta.json', { path: 'a/meta.json' }],
    ['doc://a{#part}', 'doc://a#x/y', { part: 'x/y' }],
    ['doc://a{#part}', 'doc://a', undefined],
    ['doc://{+path}{#part}', 'doc://a/b#x', { path: 'a/b', part: 'x' }],
    ['img://a{.size,ext}', 'img://a.big.png', { size: 'big', ext: 'png' }],
    ['img://a{.ext}', 'img://a.tar.gz', { ext: 'tar.gz' }],
    ['img://a{.ext}', 'img://apng', undefined],
    ['db://x{/schema,table}', 'db://x/s/t', { schema: 's', table: 't' }],
    ['db://x{/schema,table}', 'db://x/s', undefined],
    ['db://x{/schema}', 'db://x/s/t', undefined],
    ['db://x{/path*}', 'db://x/s/t', { path: 's/t' }],
    ['m://x{;a,b}', 'm://x;a=1;b=2', { a: '1', b: '2' }],
    ['m://x{;a,b}', 'm://x;b=2;a=1', undefined],
    ['s://x{?a,b}', 's://x?b=2&a=1', { a: '1', b: '2' }],
    ['s://x{?a,b}', 's://x?b=a%26b', { b: 'a&b' }],
    ['s://x{?a,b}', 's://x', {}],
    ['s://x{?a,b}', 's://x?a', { a: '' }],
    ['s://x{?a,b}', 's://x?a=..%2Fy=z', { a: '../y=z' }],
    ['s://x{?a,b}', 's://x?', undefined],
    ['s://x{?a,b}', 's://x?c=1', undefined],
    ['s://x{?a,b}', 's://x?a=1&a=2', undefined],
    ['s://x{?a,b}', 's://x?a=%', undefined],
    ['s://x{?a,b}', 's://x?a=1#f', undefined],
    ['s://x{?list*}', 's://x?list=1&list=2', { list: '1,2' }],
    ['s://x?fixed=1{&a,b}', 's://x?fixed=1&b=2', { b: '2' }],
    ['s://x?fixed=1{&a,b}', 's://x?fixed=1', {}],
    ['s://x{?a}{&b}{#part}', 's://x?b=2&a=1#p', { a: '1', b: '2', part: 'p' }],
    ['s://{+path}{?q}', 's://a/b?q=1', { path: 'a/b', q: '1' }],
    ['s://{+path}{?q}', 's://a/b?other=1', undefined],
    ['s://café/{x}', 's://caf%C3%A9/1', { x: '1' }],
    ['s://a%20b/{x}', 's://a%20b/1', { x: '1' }],
    ['s://{a.b_1}', 's://x', { 'a.b_1': 'x' }],
  ]
  for (const [template, uri, values] of cases) {
    it(`${template} ${values ? 'matches' : 'does not match'} ${uri}`, () =>
      expect(match(template, uri)).to.deep.equal(values))
  }

  it('never puts a slash or a dot segment into a simple value, in any encoding', () => {
    for (const template of ['file:///{name}', 'file:/{/name}', 'file:///x{name}', 'file:///{dir,name}']) {
      for (const evil of ['..', '.', '%2e%2e', '%2E.', '..%2Fetc', 'a%2fb', 'a%5Cb', 'a\\b', '../x']) {
        const uri = template.includes('x{')
          ? `file:///x/${evil}`
          : `file:///${template.includes(',') ? `${evil},x` : evil}`
        expect(match(template, uri), `${template} ${uri}`).to.equal(undefined)
      }
    }
  })

  it('lists variables in order and keeps them as own properties', () => {
    expect(compileUriTemplate('a://{x}{/y,z*}{?q}{&r}').variables).to.deep.equal(['x', 'y', 'z', 'q', 'r'])
    expect(Object.entries(match('a://{__proto__}', 'a://x') ?? {})).to.deep.equal([['__proto__', 'x']])
  })
})

describe('URI template expansion round trip', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  const segment = text.filter(value => !/[/\\]/.test(value) && value !== '.' && value !== '..')

  it('preserves simple, path and query values', () => {
    const { match } = compileUriTemplate('t://{a}/{b}{/c}{?d,e}')
    fc.assert(
      fc.property(segment, segment, segment, text, text, (a, b, c, d, e) => {
        const uri = `t://${encode(a)}/${encode(b)}/${encode(c)}?e=${encode(e)}&d=${encode(d)}`
        expect(match(uri)).to.deep.equal({ a, b, c, d, e })
      }),
    )
  })

  it('preserves reserved values including slashes', () => {
    const { match } = compileUriTemplate('t://x/{+path}')
    // Reserved expansion leaves a percent sign that could be an escape: such values have no way back.
    fc.assert(
      fc.property(
        text.filter(value => !value.includes('%')),
        path => {
          expect(match(`t://x/${encodeReserved(path)}`)).to.deep.equal({ path })
        },
      ),
    )
  })

  it('returns only known variables and never throws, for any URI', () => {
    const { match, variables } = compileUriTemplate('t:{a}{+b}{.c}{/d*}{;e}{?f*}{#g}')
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...'t:./;e=?f&#g%2a,'), { maxLength: 40 }), parts => {
        const values = match(`t:${parts.join('')}`)
        if (values) expect(variables).to.include.members(Object.keys(values))
      }),
    )
  })
})

describe('Hostile URIs', () => {
  // Each would take a backtracking matcher longer than the age of the universe, or at least of this suite.
  const hostile: [template: string, uri: string][] = [
    ['t:{a}{b}{c}{d}{e}{f}{g}{h}!', `t:${'x'.repeat(8_000)}`],
    ['t:{+a}/{+b}/{+c}/{+d}/{+e}/!', `t:${'/'.repeat(8_000)}`],
    ['t:{a*,b*,c*,d*,e*}!', `t:${','.repeat(8_000)}`],
    ['t:{a}{?q}{#f}', `t:${'?'.repeat(8_000)}`],
    ['t:{+a}{?q*}', `t:x?${'q=1&'.repeat(2_000)}r`],
  ]
  for (const [template, uri] of hostile) {
    it(`terminate for ${template}`, () => expect(match(template, uri)).to.equal(undefined))
  }

  it('do not match above 8,192 characters', () => {
    const uri = (length: number) => `t:${'x'.repeat(length - 2)}`
    expect(match('t:{a}', uri(8_192))).to.have.property('a')
    expect(match('t:{a}', uri(8_193))).to.equal(undefined)
    expect(match('t:{+a}', uri(65_536))).to.equal(undefined)
  })
})

describe('Many URI templates', () => {
  it('are matched quickly for as many URIs as a client may subscribe to', () => {
    const tag = (index: number) => String(index).padStart(2, '0')
    const templates = Array.from({ length: 50 }, (_, index) => compileUriTemplate(`t://{a}/{+b}.{c}/{d}${tag(index)}`))
    const uris = Array.from(
      { length: Math.floor(MAX_WATCHED_BYTES / (MAX_URI + WATCH_COST)) },
      (_, index) => `${'t://a/'.padEnd(MAX_URI - 6, 'b/.c/')}.c/d${tag(index)}`,
    )
    const found = uris.map(uri => templates.filter(template => template.match(uri) !== undefined).length)
    expect(found).to.deep.equal(uris.map(() => 1))
  })
})

describe('Invalid URI templates', () => {
  const refused: [template: string, reason: RegExp][] = [
    ['', /must be a text/],
    ['t:{a', /"\{a" is not closed/],
    ['t:{a{b}', /"\{a" is not closed/],
    ['t:a}', /"\}" is not allowed/],
    ['t:{}', /"" in "\{\}" is not a variable name/],
    ['t:{a,}', /not a variable name/],
    ['t:{user-id}', /"user-id" in "\{user-id\}" is not a variable name/],
    ['t:{a b}', /not a variable name/],
    ['t:{+}', /not a variable name/],
    ['t:{a**}', /not a variable name/],
    ['t:{=a}', /"=" is reserved/],
    ['t:{|a}', /"\|" is reserved/],
    ['t:{a:3}', /prefix "a:3" cannot be matched/],
    ['t:x{;a*}', /cannot be matched; remove/],
    ['t:{a}/{a}', /"a" twice/],
    ['t:x{?a}/y', /after \{\?a\} only/],
    ['t:x{?a}{b}', /after \{\?a\} only/],
    ['t:x{?a}{?b}', /after \{\?a\} only/],
    ['t:a b', /" " is not allowed/],
    ['t:100%', /"%" is not allowed/],
  ]
  for (const [template, reason] of refused) {
    it(`${JSON.stringify(template)}`, () => {
      expect(() => compileUriTemplate(template))
        .to.throw(reason)
        .with.property('message')
        .that.includes('uriTemplate')
    })
  }
})
