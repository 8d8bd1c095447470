// Tests the auth-bridge pages in chromium under their content security policy: accessibility, layout and hostile text.
import { createRequire } from 'node:module'
import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool } from '../../../core/index.ts'
import { createPages } from '../../../plugins/auth-bridge/pages/index.ts'
import { watchFaults } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startIssuer, stopIssuers } from '../../support/test-issuer.ts'
import { address, hostile } from './hostile-texts.ts'
import { ACCOUNT, allPages, IN_APP, KNOWN, SETTINGS, UNVERIFIED } from './page-examples.ts'
import { listen } from './page-server.ts'
import { closeTabs, openTabs, type Tabs } from './page-tabs.ts'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const pages = createPages(SETTINGS)

let tabs: Tabs
let endpoint: string
before(async function () {
  tabs = await openTabs(this)
  const tool = (name: string, title: string, description: string) =>
    defineTool({ name, title, description, handler: () => 'done' })
  const { url: authority } = await startIssuer()
  ;({ url: endpoint } = await startHost({
    server: { name: 'acme-tools', version: '1.4.0', title: 'Acme Tools', description: 'Orders and customers of Acme.' },
    toolsets: {
      all: [
        tool('orders_list', 'List orders', 'Lists the orders of a customer.'),
        tool('orders_cancel', 'Cancel order', 'Cancels an order that has not shipped.'),
      ],
    },
    routes: { '/mcp': { toolsets: 'all' }, '/in': { toolsets: 'all', authorize: true } },
    plugins: { 'transport-streamable': {}, 'auth-jwt': { authority, audience: 'a' } },
  }))
})
after(closeTabs)
after(stopHosts)
after(stopIssuers)

/** The least contrast of a text with what is behind it, and how many texts there are. */
const LEAST_CONTRAST = `(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number)
  const light = text => parse(text).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0)
  const behind = element => {
    const { backgroundColor } = getComputedStyle(element)
    return (parse(backgroundColor)[3] ?? 1) === 1 ? backgroundColor : behind(element.parentElement)
  }
  const ratio = (one, other) => (Math.max(light(one), light(other)) + 0.05) / (Math.min(light(one), light(other)) + 0.05)
  const texts = [...document.body.querySelectorAll('*')].filter(element =>
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim() !== ''))
  const edges = [...document.querySelectorAll('button, .button')].map(element =>
    ratio(getComputedStyle(element).borderTopColor, behind(element.parentElement)))
  return {
    texts: texts.length,
    text: Math.min(...texts.map(element => ratio(getComputedStyle(element).color, behind(element)))),
    edge: Math.min(...edges),
  }
})()`

interface AxeFound {
  readonly violations: unknown[]
  readonly incomplete: unknown[]
  readonly passes: number
}

const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** The dark theme differs only in colors, which do not depend on the width. */
const VIEWS = [
  { width: 1_280, colorScheme: 'light', options: { runOnly: ALL_RULES } },
  { width: 1_280, colorScheme: 'dark', options: { runOnly: ['color-contrast'] } },
  {
    width: 390,
    colorScheme: 'light',
    options: { runOnly: ALL_RULES, rules: { 'color-contrast': { enabled: false } } },
  },
] as const
const runAxe = (options: object) => `axe.run(${JSON.stringify(options)})
  .then(({ violations, passes, incomplete }) => {
    const told = list => list.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
    return { violations: told(violations), incomplete: told(incomplete), passes: passes.length }
  })`

/** Each element of some pages, with its attributes; values where they are ours. */
const PARSE = `pages => pages.map(text =>
  [...new DOMParser().parseFromString(text, 'text/html').querySelectorAll('*')].map(element =>
    [element.localName, ...[...element.attributes].map(({ name, value }) =>
      ['class', 'name', 'method', 'type', 'http-equiv', 'rel'].includes(name) ? name + '=' + value : name)].join(' ')))`

/** Widths of the window with sizes of text, in pixels. */
const SIZES = [
  [320, 16],
  [640, 32],
  [320, 32],
] as const

/** How wide the page is, and a -1 for each part that holds more than can be seen of it. */
const tooWide = (size: number) => `(() => {
  document.documentElement.style.fontSize = '${size}px'
  document.querySelector('details')?.setAttribute('open', '')
  const cut = [...document.querySelectorAll('main *:not(.hidden)')].filter(element =>
    element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== 'inline')
  return [document.documentElement.scrollWidth, ...cut.map(() => -1)]
})()`

describe('auth-bridge pages in chromium', () => {
  it('load without policy violations or external requests, and have titles', async () => {
    for (const page of Object.values(allPages(pages)))
      await tabs.withPage(page, async tab => expect(await tab.title()).to.match(/ – Acme Tools$/))
    expect(tabs.server.stray).to.deep.equal([])
  })

  it('pass all axe accessibility rules, and so does the endpoint page, light and dark, 1280 and 390 px', async () => {
    let passes = 0
    await tabs.inTab(
      async tab => {
        const leave = pages.leave(IN_APP.redirect.uri)
        const shown = Object.entries({ ...allPages(pages), leave }).map(
          ([name, page]) => [name, tabs.server.show(page)] as const,
        )
        for (const [name, url] of [
          ...shown,
          ['endpoint', `${endpoint}/mcp`],
          ['protected', `${endpoint}/in`],
        ] as const) {
          await tab.goto(url)
          await tab.addScriptTag({ path: AXE })
          for (const { width, colorScheme, options } of VIEWS) {
            // Axe cannot judge the contrast of text at the edge of the window, so it is high.
            await tab.setViewportSize({ width, height: 4_000 })
            await tab.emulateMedia({ colorScheme })
            const found = await tab.evaluate<AxeFound>(runAxe(options))
            expect(found.violations, `${name}, ${width} px, ${colorScheme}`).to.deep.equal([])
            expect(found.incomplete, `${name}, ${width} px, ${colorScheme}`).to.deep.equal([])
            passes += found.passes
          }
        }
      },
      // The policy allows no other script.
      { bypassCSP: true },
    )
    expect(passes).to.be.above(400)
  })

  it('show the decision of a consent without scrolling at 1280 x 800 pixels', async () => {
    const scopes = Array.from({ length: 40 }, (_, index) => `scope:${index}`)
    for (const question of [KNOWN, UNVERIFIED, IN_APP, { ...UNVERIFIED, scopes }]) {
      await tabs.inTab(
        async tab => {
          await tab.goto(tabs.server.show(pages.consent(question)))
          for (const name of ['deny', 'allow']) {
            const { y, height } = (await tab.locator(`button[value=${name}]`).boundingBox()) ?? { y: -1, height: 0 }
            expect(
              [y, y + height].every(edge => edge > 0 && edge <= 800),
              `${name} at ${y}`,
            ).to.equal(true)
          }
        },
        { viewport: { width: 1280, height: 800 } },
      )
    }
  })

  it('contain only their own elements and attributes after parsing', async () => {
    const made = fc
      .sample(fc.tuple(hostile, hostile, address), { numRuns: 400, seed: 7 })
      .map(([text, other, uri]) => {
        const client = { name: text, id: other, documentHost: undefined, isKnown: true, homepage: uri }
        const person = { subject: text, name: other }
        return pages.consent({
          ...KNOWN,
          client,
          person,
          redirect: { uri },
          resources: [text],
          scopes: [other],
          token: other,
        })
      })
      .map(({ html }) => html)
    const found = await tabs.inTab(tab => tab.evaluate<string[][]>(`(${PARSE})(${JSON.stringify(made)})`))
    const ours = [KNOWN, IN_APP, UNVERIFIED].map(question => pages.consent(question).html)
    const own = await tabs.inTab(tab => tab.evaluate<string[][]>(`(${PARSE})(${JSON.stringify(ours)})`))
    expect([...new Set(own.flat())]).to.include.members([...new Set(found.flat())])
  })

  it('have sufficient contrast, light and dark', async () => {
    let texts = 0
    await tabs.inTab(async tab => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await tab.emulateMedia({ colorScheme })
        const { consent, 'consent-unverified': unverified, fault, account } = allPages(pages)
        for (const { html } of [consent, unverified, fault, account]) {
          await tab.setContent(html)
          const found = await tab.evaluate<{ text: number; edge: number; texts: number }>(LEAST_CONTRAST)
          expect(found.text, `text, ${colorScheme}`).to.be.at.least(4.5)
          expect(found.edge, `edge of buttons, ${colorScheme}`).to.be.at.least(3)
          texts += found.texts
        }
      }
    })
    expect(texts).to.be.above(100)
  })

  it('fit 320 pixels and 640 pixels with double text size without sideways scrolling', async () => {
    const long = { ...UNVERIFIED.client, name: 'W'.repeat(200), id: 'x'.repeat(300) }
    const odd = {
      'consent-long': pages.consent({
        ...UNVERIFIED,
        client: long,
        redirect: { uri: `https://${'sub-domain.'.repeat(20)}example/` },
        resources: [`https://tools.example/${'x'.repeat(300)}`],
        scopes: ['y'.repeat(300)],
        person: { subject: 'z'.repeat(300), email: `${'e'.repeat(90)}@example.com` },
      }),
      'account-long': pages.account({
        ...ACCOUNT,
        grants: ACCOUNT.grants.map(grant => ({ ...grant, client: long, redirectUri: `https://${'a'.repeat(253)}/` })),
      }),
    }
    for (const [name, page] of Object.entries({ ...allPages(pages), ...odd })) {
      await tabs.withPage(page, async tab => {
        for (const [width, size] of SIZES) {
          await tab.setViewportSize({ width, height: 600 })
          expect(await tab.evaluate(tooWide(size)), `${name}, ${width} pixels, text of ${size}`).to.deep.equal([width])
        }
      })
    }
  })

  it('have no layout shift, and isolate text direction', async () => {
    const client = { ...UNVERIFIED.client, name: '\u202eedualC\u202c שלום' }
    await tabs.withPage(pages.consent({ ...UNVERIFIED, client }), async tab => {
      expect(await tab.evaluate('document.getAnimations().length')).to.equal(0)
      expect(await tab.textContent('dd bdi')).to.equal('edualC שלום')
      expect(await tab.evaluate('getComputedStyle(document.querySelector("bdi")).unicodeBidi')).to.equal('isolate')
    })
  })

  it('cannot be framed', async () => {
    const inner = tabs.server.show(pages.consent(KNOWN))
    const outer = await listen((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<iframe src="${inner}"></iframe>`)
    })
    await tabs.inTab(async tab => {
      const faults = watchFaults(tab)
      await tab.goto(outer)
      await eventually(
        'the frame is refused',
        () => faults.join(),
        text => text.includes('frame-ancestors'),
      )
      expect(await tab.frames()[1]?.locator('button').count()).to.equal(0)
    })
  })
})
