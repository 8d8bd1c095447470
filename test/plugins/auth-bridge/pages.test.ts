// Tests the HTML of the auth-bridge pages: escaping of foreign text, content and content security policy.
import { createHash } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { type ConsentQuestion, createPages } from '../../../plugins/auth-bridge/pages/index.ts'
import { shown, shownHost } from '../../../plugins/families/pages/index.ts'
import { caseCount } from '../../support/thorough.ts'
import { address, hostile } from './hostile-texts.ts'
import { ACCOUNT, allPages, FAULT, IN_APP, KNOWN, SETTINGS, SIGN_IN, UNVERIFIED } from './page-examples.ts'

const pages = createPages(SETTINGS)

/** A tag as this folder writes them. */
const TAG = /^<(?:!doctype html|\/?([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*))>$/
const ELEMENTS = new Set(
  (
    'html head meta link title style body header main footer h1 h2 h3 p a strong bdi span code ul li dl dt dd details ' +
    'summary form input button div time img label'
  ).split(' '),
)
const ATTRIBUTES = new Set(
  'lang charset name content rel href http-equiv src alt class method type value role datetime action maxlength required'.split(
    ' ',
  ),
)

/** A link, or the way to an app. */
const HREF =
  /^(?:https?:|mailto:|data:,|\/(?!\/)|(?!javascript|data|vbscript|blob|file|about)(?:[a-z][a-z0-9+.-]*:\/\/|[a-z][a-z0-9+-]*\.[a-z0-9+.-]*:))/

/** What in a page is not written by us; undefined: nothing. */
function foreignIn(html: string): string | undefined {
  const page = html.replace(/<style>[^<]*<\/style>/, '')
  const rest = page.replace(/<[^>]*>/g, tag => {
    const [, element = 'html', attributes = ''] = TAG.exec(tag) ?? [tag, 'foreign']
    const names = [...attributes.matchAll(/ ([a-z-]+)(?:="([^"]*)")?/g)]
    const bad = names.find(
      ([, name = '', value = '']) => !ATTRIBUTES.has(name) || (name === 'href' && !HREF.test(value)),
    )
    return ELEMENTS.has(element) && !bad ? '' : `<${tag}>`
  })
  // What is left are texts: no angle bracket, and every & begins a reference that we wrote.
  return /[<>"]|&(?!#\d+;)/.exec(rest) ? rest : undefined
}

describe('auth-bridge pages: escaping of foreign text', () => {
  it('the injection check of this test detects foreign markup and passes our own pages', () => {
    for (const [name, { html }] of Object.entries(allPages())) expect(foreignIn(html), name).to.equal(undefined)
    expect(foreignIn(pages.leave(IN_APP.redirect.uri).html)).to.equal(undefined)
    for (const bad of [
      '<script>',
      '<b>',
      '<p onclick="x">',
      '<a href="javascript:x">',
      '<a href="javascript://x">',
      '<a href="a:x">',
      'a < b',
      '<p class="a" style>',
      '&lt;',
    ])
      expect(foreignIn(`<p>${bad}</p>`), bad).not.to.equal(undefined)
  })

  it('never becomes an element or attribute on the consent page', () => {
    const property = fc.property(
      fc.record({
        name: fc.option(hostile, { nil: undefined }),
        id: hostile,
        documentHost: fc.option(hostile, { nil: undefined }),
        isKnown: fc.boolean(),
        homepage: address,
      }),
      address,
      fc.record({ name: hostile, email: hostile, subject: hostile }),
      fc.array(hostile, { maxLength: 3 }),
      hostile,
      (client, uri, person, texts, token) => {
        const question: ConsentQuestion = {
          ...KNOWN,
          client,
          redirect: { uri },
          person,
          resources: texts,
          scopes: texts,
          withheld: texts,
          token,
        }
        const { html, policy } = pages.consent(question)
        expect(foreignIn(html)).to.equal(undefined)
        expect(policy).to.match(/^default-src 'none'; [ -~]*; form-action 'self'; frame-ancestors 'none'$/i)
      },
    )
    fc.assert(property, { numRuns: caseCount(300, 75) })
  })

  it('never becomes an element or attribute on other pages and in settings', () => {
    const property = fc.property(hostile, hostile, address, hostile, (text, other, href, id) => {
      const scopeTitles = new Map([[text, other]])
      const users = [{ id: text, name: other }]
      const odd = createPages({ ...SETTINGS, label: other, page: { name: text, support: href }, scopeTitles, users })
      const client = { ...UNVERIFIED.client, name: text, documentHost: other }
      const grant = {
        grantId: id,
        client,
        redirectUri: other,
        resources: [href, text],
        scopes: [text, other],
        since: 1e300,
        used: 0,
      }
      const made = [
        odd.account({
          person: { subject: text },
          signedInWith: other,
          grants: [grant, grant],
          token: id,
          notice: text,
        }),
        odd.message({
          title: text,
          text: other,
          detail: id,
          action: { label: text, href },
          other: { label: text, href },
          isError: true,
        }),
        odd.signIn({ text, label: other, action: href }),
        odd.consent({ ...KNOWN, scopes: [text] }),
        odd.chooseUser({ state: text, action: '/auth/callback' }),
      ]
      for (const { html } of made) expect(foreignIn(html)).to.equal(undefined)
    })
    fc.assert(property, { numRuns: caseCount(150, 40) })
  })

  it('is limited to 80 visible characters on one line without direction marks', () => {
    const property = fc.property(hostile, text => {
      const made = shown(text)
      expect([...made].length).to.be.at.most(80)
      expect(made).not.to.match(
        /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|^\s|\s$|\s\s|\p{M}{4}/u,
      )
    })
    fc.assert(property, { numRuns: caseCount(1_000, 150) })
  })

  for (const [what, text, expected] of [
    ['an override of the direction', 'gpj.\u202eexe', 'gpj.exe'],
    ['isolates and marks', '\u2066a\u2069\u200eb\u061c', 'ab'],
    ['line breaks and tabs', 'a\r\n\u2028\tb', 'a b'],
    ['tags and fillers', 'a\u{e0041}\u3164\u115f\u00adb', 'ab'],
    ['piled marks', `a${'\u0301'.repeat(30)}b`, 'a\u0301\u0301\u0301b'],
    ['a half of a pair', 'a\ud83db', 'ab'],
    ['only what is not seen', '\u200b\u2060\ufeff', ''],
    ['a long one', 'x'.repeat(200), `${'x'.repeat(79)}…`],
    ['letters of two units', '😀'.repeat(100), `${'😀'.repeat(79)}…`],
    ['a name as it is', "Ada's Łódź 東京 كلود", "Ada's Łódź 東京 كلود"],
  ] as const) {
    it(`is sanitised: ${what}`, () => expect(shown(text)).to.equal(expected))
  }

  it('is shortened at its front if it is a host name', () => {
    expect(shownHost('a.example', 9)).to.equal('a.example')
    expect(shownHost('a.example', 8)).to.equal('…example')
  })

  it('a megabyte of text keeps the page small', () => {
    const text = '\u0301 <'.repeat(350_000)
    const client = { name: text, id: text, documentHost: text, isKnown: false, homepage: `https://x.example/${text}` }
    const { html } = pages.consent({ ...KNOWN, client, redirect: { uri: text }, scopes: Array(10_000).fill(text) })
    expect(html.length).to.be.below(60_000)
    expect(html).to.contain('And 9950 more.')
  })

  it('posts tokens and ids unchanged', () => {
    const odd = `a"b'<c>&amp;\u202e${'x'.repeat(300)}`
    const expected = odd.replace(/["'<>&]/g, character => `&#${character.charCodeAt(0)};`)
    expect(pages.consent({ ...KNOWN, token: odd }).html).to.contain(`name="csrf" value="${expected}"`)
    const [grant] = ACCOUNT.grants
    if (!grant) throw new Error('no grant')
    expect(pages.account({ ...ACCOUNT, grants: [{ ...grant, grantId: odd }] }).html).to.contain(
      `name="revoke" value="${expected}"`,
    )
  })
})

describe('auth-bridge pages: consent page', () => {
  const textOf = (question: ConsentQuestion) =>
    pages
      .consent(question)
      .html.replace(/<style>[^<]*<\/style>|<[^>]*>/g, ' ')
      .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
      .replace(/\s+/g, ' ')

  it('shows changes before all client information', () => {
    const text = textOf(UNVERIFIED)
    expect(text.indexOf('Something changed')).to.be.within(0, text.indexOf('callback.agent-tools.example'))
    expect(text.indexOf('Something changed')).to.be.below(text.indexOf('will act for'))
    expect(textOf({ ...KNOWN, changed: 'document' })).to.contain('its description of itself has changed')
    expect(textOf(KNOWN)).not.to.contain('Something changed')
  })

  it('lists withheld scopes on a separate line', () => {
    const withheld = ['orders:delete', '<b>admin']
    expect(textOf({ ...KNOWN, withheld })).to.match(/Not available to your account: orders:delete ?, <b>admin ?\./)
    for (const scopes of [KNOWN.scopes, []]) {
      const made = textOf({ ...KNOWN, scopes, withheld: ['x'] })
      expect(made.indexOf('Not available')).to.be.within(made.indexOf('Resource'), made.lastIndexOf('Deny'))
    }
    const many = textOf({ ...KNOWN, withheld: Array.from({ length: 100 }, (_, index) => `scope-${index}`) })
    expect(many)
      .to.match(/scope-9 and 90 more ?\./)
      .and.not.contain('scope-10')
    for (const none of [{}, { withheld: [] }]) expect(textOf({ ...KNOWN, ...none })).not.to.contain('Not available')
  })

  it('shows titles of scopes together with their names', () => {
    const scopes = ['orders:write', 'other:scope', 'offline_access']
    expect(textOf({ ...KNOWN, scopes })).to.match(
      /Permissions Change orders orders:write other:scope Keep access while you are away offline_access/,
    )
  })

  it('warns about an unverified client', () => {
    expect(textOf(UNVERIFIED))
      .to.contain('The maker of this client is not verified.')
      .and.contain('If you are not sure, deny')
    for (const question of [KNOWN, IN_APP])
      expect(textOf(question)).not.to.contain('not verified').and.not.contain('not sure')
    expect(textOf(KNOWN)).to.match(/claude\.ai/)
    expect(textOf(IN_APP)).to.contain('Registered by the operator of Acme Tools')
  })

  it('links the client homepage only if the client is known or it matches the document host', () => {
    const at = (homepage: string, client: Partial<ConsentQuestion['client']>) =>
      pages.consent({ ...KNOWN, client: { ...KNOWN.client, homepage, ...client } }).html.includes('Homepage')
    expect(at('https://claude.ai/a', {})).to.equal(true)
    expect(at('https://other.example/', {})).to.equal(false)
    expect(at('https://claude.ai@other.example/', {})).to.equal(false)
    expect(at('https://x@claude.ai/', {})).to.equal(false)
    expect(at('javascript:alert(1)', { isKnown: true })).to.equal(false)
    expect(at('https://other.example/', { isKnown: true })).to.equal(true)
    expect(at('https://claude.ai/', { documentHost: undefined })).to.equal(false)
  })

  const long = `claude.ai.${'a.'.repeat(200)}evil.example`
  for (const [uri, place, mayLead] of [
    ['http://127.0.0.1:8123/cb', 'This computer', true],
    ['http://localhost/cb', 'This computer', true],
    ['http://[::1]:8123/cb', 'This computer', true],
    ['https://claude.ai/api/cb?x=1', 'claude.ai', true],
    ['https://claude.ai:8443/cb', 'claude.ai:8443', true],
    ['https://claude.ai@evil.example/', 'evil.example', true],
    ['https://сlaude.ai/', 'xn--laude-0ye.ai', true],
    [`https://${long}/`, `…${long.slice(-252)}`, true],
    ['http://127.0.0.1.evil.example/', '127.0.0.1.evil.example', true],
    ['cursor://anysphere/cb', 'cursor://', true],
    ['com.example.app:/cb', 'com.example.app:', true],
    ['javascript:alert(1)', 'javascript:alert(1)', false],
    ['data:text/html,x', 'data:text/html,x', false],
    ['https://a;sandbox,b/', 'https://a;sandbox,b/', false],
    ['https://*.example/', 'https://*.example/', false],
    ['not a url', 'not a url', false],
  ] as const) {
    it(`shows the redirect target of ${uri.slice(0, 40)}`, () => {
      const { html, policy } = pages.consent({ ...KNOWN, redirect: { uri } })
      expect(html).to.contain(`<strong><bdi>${place}</bdi></strong>`)
      expect(policy).to.contain("; form-action 'self'; frame")
      if (!mayLead) expect(() => pages.leave(uri)).to.throw(TypeError, 'cannot lead')
      else expect(pages.leave(uri).policy).to.contain("form-action 'none'")
    })
  }

  it('places Deny before Allow, without autofocus', () => {
    const { html } = pages.consent(KNOWN)
    const buttons = [...html.matchAll(/<button[^>]*value="([a-z]+)"/g)].map(([, value]) => value)
    expect(buttons).to.deep.equal(['deny', 'allow'])
    expect(html).not.to.contain('autofocus').and.not.contain('action=')
  })
})

describe('auth-bridge pages: all pages', () => {
  const all = { ...allPages(), leave: pages.leave(KNOWN.redirect.uri) }

  for (const [name, { html, policy }] of Object.entries(all)) {
    it(`${name}: the content security policy allows only its own style and inline images`, () => {
      const style = /<style>([^<]*)<\/style>/.exec(html)?.[1] ?? ''
      const hash = createHash('sha256').update(style).digest('base64')
      const isForm = html.includes('<form')
      const action = isForm ? "'self'" : "'none'"
      const sources = policy.replace(`'sha256-${hash}'`, 'OWN')
      expect(sources).to.match(
        new RegExp(
          `^default-src 'none'; style-src OWN; img-src data:; base-uri 'none'; form-action ${action}; frame-ancestors 'none'$`,
        ),
      )
      expect(html).to.match(/^<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">/)
      expect(html).not.to.match(/<script|<iframe|style="|url\(|@import/)
      expect(style).not.to.match(/transition|animation|transform/)
      expect(html.match(/<h1>/g), 'h1').to.have.lengthOf(1)
      expect(html.length).to.be.below(16_000)
    })
  }

  it('have a banner in development only', () => {
    for (const [name, { html }] of Object.entries(all))
      expect(html.includes('no password required'), name).to.equal(name.startsWith('development'))
  })

  it('omits unsafe links', () => {
    for (const href of [
      'javascript:alert(1)',
      '//evil.example',
      '/\\evil.example',
      'data:text/html,x',
      'x',
      '',
      ' javascript:x',
    ])
      expect(pages.message({ ...FAULT, action: { label: 'Go', href } }).html, href).not.to.contain('class="button')
    expect(pages.signIn({ ...SIGN_IN, action: 'https://acme.example/in' }).html).to.contain(
      'href="https://acme.example/in"',
    )
  })

  it('repeats the button target as a plain link, also for app schemes but not for browser schemes', () => {
    const made = (href: string) => pages.message({ ...FAULT, other: { label: 'Back to <it>', href } }).html
    for (const [href, expected] of [
      ['https://claude.ai/cb?error=access_denied&state=x', 'https://claude.ai/cb?error=access_denied&#38;state=x'],
      ['http://127.0.0.1:5000/cb', 'http://127.0.0.1:5000/cb'],
      ['cursor://anysphere/cb', 'cursor://anysphere/cb'],
      ['com.example.app:/cb', 'com.example.app:/cb'],
    ] as const) {
      const html = made(href)
      expect(html).to.contain(`<p><a href="${expected}">Back to &#60;it&#62;</a></p>`)
      expect(html.indexOf('class="button main"')).to.be.within(0, html.indexOf('Back to'))
    }
    for (const href of [
      'javascript:alert(1)',
      'data:text/html,x',
      '//evil.example',
      'blob:x',
      'file:///etc',
      'javascript://x',
      'a:b',
      'x',
      '',
    ])
      expect(made(href), href).not.to.contain('Back to')
  })

  it('shows the access of each client on the account page', () => {
    const [grant] = ACCOUNT.grants
    if (!grant) throw new Error('no grant')
    const made = (resources?: readonly string[]) =>
      pages.account({ ...ACCOUNT, grants: [{ ...grant, ...(resources && { resources }) }] }).html
    expect(made(['https://tools.acme.example/mcp', 'https://tools.acme.example/<b>'])).to.match(
      /<dt>Resources<\/dt><dd><code>https:\/\/tools\.acme\.example\/mcp<\/code> <code>[^<>]+<\/code> <\/dd>/,
    )
    expect(made(Array(100).fill('https://a.example/')).match(/a\.example/g)).to.have.lengthOf(50)
    for (const none of [undefined, []]) expect(made(none)).not.to.contain('Resources')
  })

  it('shows the contact as a mail link or as text', () => {
    const footerFor = (support: string) =>
      createPages({ ...SETTINGS, page: { name: 'A', support } }).signIn(SIGN_IN).html
    expect(footerFor('https://help.example/a')).to.contain('<a href="https://help.example/a">help.example/a</a>')
    expect(footerFor('Ask Ada, room 12.')).to.contain('<footer><p>Ask Ada, room 12.</p></footer>')
  })
})
