// Tests that the auth-bridge pages match the code: options, provider error codes and quoted messages.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { optionsSchema, PROVIDERS } from '../../plugins/auth-bridge/options.ts'
import { explain, type ProviderRefusal, VENDOR_ERRORS } from '../../plugins/auth-bridge/upstream/upstream.ts'
import { PAGES, ROOT, readPage } from '../support/doc-blocks.ts'

type Type = ProviderRefusal['type']

const sourceOf = (file: string) => readFileSync(`${ROOT}plugins/auth-bridge/${file}`, 'utf8')

/** `oauth` is on the page of `oidc`, `development` on the page of dev-auth-server. */
const OWN_PAGE = PROVIDERS.filter(type => type !== 'oauth' && type !== 'development')
const pageOf = (type: Type) => readPage(`docs/bridge/${type}.md`)

/** First cells of the table below the heading. */
function symptomsIn(page: string): string[] {
  const [, rest = ''] = page.split('\n## Troubleshooting\n')
  return [...rest.matchAll(/^\| (.+?) \| .+ \|$/gm)].map(([, cell = '']) => cell).slice(1)
}

const codesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
const quotesIn = (cell: string) => [...cell.matchAll(/"([^"]+)"/g)].map(([, text = '']) => text)

/** As a provider would send it: an error, a description, or one with the other. */
function isExplained(type: Type, shown: string): boolean {
  const [code = '', description = ''] = shown.split(': ')
  const refusals = [{ code: shown }, { description: shown }, { code, description: description || shown }]
  return refusals.some(refusal => explain({ type, ...refusal }) !== undefined)
}

/** Names of options, of those within others too; a map's names are its user's. */
function optionsIn(schema: unknown): string[] {
  const { properties = {}, items } = (schema ?? {}) as { properties?: Record<string, unknown>; items?: unknown }
  const own = Object.entries(properties).flatMap(([name, inner]) => [name, ...optionsIn(inner)])
  return items === undefined ? own : [...own, ...optionsIn(items)]
}

describe('auth-bridge pages', () => {
  it('document every option', () => {
    const page = readPage('docs/plugins/auth-bridge.md')
    const code = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text).join(' ')
    const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text).join(' ')
    const names = [...new Set(optionsIn(optionsSchema))]
    expect(names.filter(name => !new RegExp(`\\b${name}\\b`).test(`${code} ${blocks}`))).to.deep.equal([])
    expect(names.length).to.be.above(40)
  })

  it('cover every provider with redirect URI and config', () => {
    for (const type of OWN_PAGE) {
      expect(PAGES).to.include(`docs/bridge/${type}.md`)
      expect(pageOf(type), type).to.include('https://mcp.acme.example/auth/callback').and.include(`type: '${type}'`)
      expect(readPage('docs/bridge/README.md')).to.include(`](${type}.md)`)
    }
  })

  it('explain the same error codes as the log', () => {
    const shown = OWN_PAGE.filter(type => type !== 'oidc').flatMap(type =>
      symptomsIn(pageOf(type)).flatMap(cell => codesIn(cell).map(code => [type, code] as const)),
    )
    expect(shown.filter(([type, code]) => !isExplained(type, code))).to.deep.equal([])
    expect(shown.length).to.be.above(50)
    expect(isExplained('entra', 'AADSTS99999')).to.equal(false)
  })

  it('list every Entra error code that the log explains', () => {
    const numbers = Object.values(VENDOR_ERRORS.entra ?? {}).flatMap(({ source }) => source.match(/\d{5,}/g) ?? [])
    expect(numbers.length).to.be.above(20)
    const page = pageOf('entra')
    expect(numbers.filter(number => !page.includes(`\`AADSTS${number}\``))).to.deep.equal([])
  })

  it('quote messages exactly', () => {
    const told = ['people/decide.ts', 'browser/sign-in.ts', 'upstream/connection.ts', 'upstream/person.ts']
      .map(sourceOf)
      .join()
    const quoted = OWN_PAGE.flatMap(type => symptomsIn(pageOf(type)).flatMap(quotesIn))
    const pieces = quoted.flatMap(text => text.split('...').map(piece => piece.replace(/^[ ,]+|[ ,]+$/g, '')))
    expect(pieces.filter(piece => !told.includes(piece))).to.deep.equal([])
    expect(quoted.length).to.be.above(6)
  })
})
