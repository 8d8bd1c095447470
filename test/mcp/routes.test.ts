// Tests the path table and the routes of the config.
import { expect } from 'chai'
import { canonicalPath } from '../../core/http/request-target.ts'
import type { Config } from '../../core/index.ts'
import { createPathTable } from '../../core/kernel/path-table.ts'
import { compileRoutes } from '../../core/mcp/routes/routes.ts'

const late = { address: () => 'http://127.0.0.1:3000', revisions: () => [] }
const toolsets = { clock: [], notes: [] }
const compile = (routes: Config['routes']) => compileRoutes({ toolsets, routes }, late)

function tableOf(...paths: string[]) {
  const table = createPathTable<string>()
  for (const path of paths) table.add(path, path)
  return (given: string) => {
    const path = canonicalPath(given)
    const found = path === undefined ? undefined : table.match(path)
    return found && [found.target, { ...found.params }]
  }
}

describe('Path table', () => {
  it('ignores a trailing slash and is case-sensitive', () => {
    const match = tableOf('/', '/a', '/B/c')
    expect(match('/')).to.deep.equal(['/', {}])
    expect(match('/a/')).to.deep.equal(['/a', {}])
    expect(match('/A')).to.equal(undefined)
    expect(match('/B/c')).to.deep.equal(['/B/c', {}])
    expect(match('//')).to.equal(undefined)
  })

  it('prefers fixed paths over parameters, in any order', () => {
    const match = tableOf('/t/:category?', '/t/special', '/:any')
    expect(match('/t/special')).to.deep.equal(['/t/special', {}])
    expect(match('/t/clock')).to.deep.equal(['/t/:category?', { category: 'clock' }])
    expect(match('/t')).to.deep.equal(['/t/:category?', {}])
    expect(match('/x')).to.deep.equal(['/:any', { any: 'x' }])
    expect(match('/t/a/b')).to.equal(undefined)
  })

  it('prefers the path with fewer parameters, in any order', () => {
    for (const paths of [
      ['/t/:category?', '/t/:category?/sse'],
      ['/t/:category?/sse', '/t/:category?'],
    ]) {
      const match = tableOf(...paths)
      expect(match('/t/sse'), `${paths}`).to.deep.equal(['/t/:category?/sse', {}])
      expect(match('/t/clock/sse'), `${paths}`).to.deep.equal(['/t/:category?/sse', { category: 'clock' }])
      expect(match('/t/clock'), `${paths}`).to.deep.equal(['/t/:category?', { category: 'clock' }])
    }
  })

  it('decodes parameters without adding path segments', () => {
    const match = tableOf('/t/:category')
    expect(match('/t/caf%C3%A9')).to.deep.equal(['/t/:category', { category: 'café' }])
    expect(match('/t/a%2Fb')).to.equal(undefined)
    expect(match('/t/a%2fb')).to.equal(undefined)
    expect(match('/t/%E0%A4%A')).to.equal(undefined)
  })

  it('rejects two entries at one path', () => {
    expect(() => tableOf('/a', '/a/')).to.throw('two handlers are registered for /a')
  })
})

describe('Config routes', () => {
  it('resolve a toolset parameter, its default and unknown values', () => {
    const [route] = compile({ '/t/:category?': { toolsets: ':category', default: ['clock', 'notes'] } })
    expect(route?.toolsetsFor({ category: 'notes' })).to.deep.equal(['notes'])
    expect(route?.toolsetsFor({})).to.deep.equal(['clock', 'notes'])
    for (const category of ['none', '__proto__', 'constructor', '*', '']) {
      expect(route?.toolsetsFor({ category }), category).to.equal(undefined)
    }
    const [bare] = compile({ '/t/:category?': { toolsets: ':category' } })
    expect(bare?.toolsetsFor({})).to.equal(undefined)
  })

  it('build the URL of each path as a separate resource', () => {
    const [root, category] = compile({ '/': { toolsets: 'clock' }, '/t/:category?': { toolsets: ':category' } })
    expect(root?.url()).to.equal('http://127.0.0.1:3000')
    expect(category?.url({ category: 'a b' })).to.equal('http://127.0.0.1:3000/t/a%20b')
    expect(category?.url()).to.equal('http://127.0.0.1:3000/t')
  })

  it('may overlap if a route exists at the intersection', () => {
    const [who, admin, info] = compile({
      '/:who/info': { toolsets: ':who' },
      '/admin/:what': { toolsets: 'clock' },
      '/admin/info': { toolsets: 'notes' },
    })
    expect(who?.toolsetsFor({ who: 'clock' })).to.deep.equal(['clock'])
    expect(who?.toolsetsFor({ who: 'admin' })).to.equal(undefined)
    expect(admin?.toolsetsFor({ what: 'x' })).to.deep.equal(['clock'])
    expect(admin?.toolsetsFor({ what: 'info' })).to.equal(undefined)
    expect(info?.toolsetsFor({})).to.deep.equal(['notes'])
  })

  it('exclude the paths of more specific routes', () => {
    const [all, bare, notes] = compile({
      '/t/:set?': { toolsets: ':set', default: ['clock'] },
      '/t': { toolsets: 'notes' },
      '/t/notes': { toolsets: 'notes' },
    })
    expect(all?.toolsets).to.deep.equal(['clock'])
    expect(all?.toolsetsFor({})).to.equal(undefined)
    expect(all?.toolsetsFor({ set: 'notes' })).to.equal(undefined)
    expect(all?.toolsetsFor({ set: 'clock' })).to.deep.equal(['clock'])
    expect([bare?.toolsetsFor({}), notes?.toolsetsFor({})]).to.deep.equal([['notes'], ['notes']])
  })

  const mistakes: Array<[string, Config['routes'], RegExp]> = [
    [
      'a parameter next to an optional one',
      { '/t/:a?': { toolsets: 'clock' }, '/t/:b': { toolsets: 'clock' } },
      /the same path/,
    ],
    [
      'two escapings of one path',
      { '/a b': { toolsets: 'clock' }, '/%61%20b': { toolsets: 'clock' } },
      /are the same path/,
    ],
    ['a path that no request has', { '/a/../b': { toolsets: 'clock' } }, /"\.\."/],
    ['a bad escape', { '/a%2/b': { toolsets: 'clock' } }, /"a%2"/],
  ]
  for (const [what, routes, message] of mistakes) {
    it(`stop startup for ${what}`, () => {
      expect(() => compile(routes)).to.throw(message)
    })
  }
})
