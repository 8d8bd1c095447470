// `npm run docs:pictures`: writes the screenshots of docs/pictures with chromium and `script` of util-linux.
// Names select pictures: `npm run docs:pictures -- console`. `npm run docs` first builds the website. Check each picture before a commit.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, extname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { constants, crc32, deflateSync } from 'node:zlib'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { createHost } from '../core/create-host.ts'
import { defineTool, ToolError } from '../core/index.ts'
import { createTestLog } from '../core/testing/test-log.ts'
import { META } from '../core/transport.ts'
import { createPages } from '../plugins/auth-bridge/pages/index.ts'
import { ACCOUNT, KNOWN, SETTINGS } from '../test/plugins/auth-bridge/page-examples.ts'
import { as, bearerJson } from '../test/plugins/tool-policy/bearer-json.ts'
import { modern } from '../test/support/rpc.ts'
import { bundleConsole } from './bundle-console.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SITE = join(ROOT, 'site/dist')
const COLORS = 96

const pictureFile = (name: string): string => join(ROOT, 'docs/pictures', name)

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** Encodes pixels as a PNG with a palette of frequent colors, which has a quarter of the size of a true-color PNG. */
function toPng(pixels: Uint32Array, width: number, height: number): Buffer {
  const counts = new Map<number, number>()
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1)
  const byCount = [...counts].sort(([, one], [, other]) => other - one).map(([pixel]) => pixel)
  const parts = (pixel: number) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255] as const
  const distance = (one: number, other: number) => {
    const [left, right] = [parts(one), parts(other)]
    return left.reduce((sum, value, index) => sum + (value - (right[index] ?? 0)) ** 2, 0)
  }
  const palette: number[] = []
  // A color that is close to an earlier one adds nothing to the palette.
  for (const pixel of byCount)
    if (palette.length < COLORS && palette.every(known => distance(known, pixel) > 60)) palette.push(pixel)
  const nearest = new Map<number, number>()
  for (const pixel of byCount) {
    const distances = palette.map(known => distance(known, pixel))
    nearest.set(pixel, distances.indexOf(Math.min(...distances)))
  }
  const rows = Buffer.alloc(height * (width + 1))
  for (const [at, pixel] of pixels.entries()) rows[at + Math.floor(at / width) + 1] = nearest.get(pixel) ?? 0
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3], 8)
  const data = deflateSync(rows, { level: constants.Z_BEST_COMPRESSION })
  const start = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10])
  const colors = Buffer.from(palette.flatMap(parts))
  return Buffer.concat([
    start,
    chunk('IHDR', header),
    chunk('PLTE', colors),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const READ_PIXELS = (url: string) => `fetch('${url}').then(file => file.blob()).then(createImageBitmap).then(image => {
  const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d')
  canvas.drawImage(image, 0, 0)
  const { data } = canvas.getImageData(0, 0, image.width, image.height)
  let text = ''
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192))
  return { width: image.width, height: image.height, data: btoa(text) }
})`

async function savePicture(tab: Page, name: string, fullPage = false): Promise<void> {
  const url = `data:image/png;base64,${(await tab.screenshot({ fullPage })).toString('base64')}`
  await tab.goto('about:blank')
  const read = await tab.evaluate<{ width: number; height: number; data: string }>(READ_PIXELS(url))
  const pixels = new Uint32Array(new Uint8Array(Buffer.from(read.data, 'base64')).buffer)
  writeFileSync(pictureFile(name), toPng(pixels, read.width, read.height))
}

async function inTab(browser: Browser, options: BrowserContextOptions, work: (tab: Page) => Promise<void>) {
  const context = await browser.newContext({ bypassCSP: true, colorScheme: 'light', ...options })
  await work(await context.newPage())
  await context.close()
}

async function saveEndpointPage(browser: Browser): Promise<void> {
  const tool = (name: string, title: string, description: string) =>
    defineTool({ name, title, description, handler: () => 'done' })
  const host = await createHost({
    server: { name: 'acme-tools', version: '1.4.0', title: 'Acme Tools', description: 'Orders and customers of Acme.' },
    http: { host: '127.0.0.1', port: 0 },
    toolsets: {
      all: [
        tool('orders_list', 'List orders', 'Lists the orders of a customer.'),
        tool('orders_cancel', 'Cancel order', 'Cancels an order that has not shipped.'),
      ],
    },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {} },
  })
  await host.listen()
  await inTab(browser, { viewport: { width: 720, height: 800 } }, async tab => {
    await tab.goto(`${host.url}/mcp`)
    await tab.setContent((await tab.content()).replaceAll(host.url, 'https://tools.acme.example'))
    await savePicture(tab, 'endpoint-page.png')
  })
  await host.close()
}

async function saveBridgePages(browser: Browser): Promise<void> {
  const pages = createPages(SETTINGS)
  for (const [name, { html }] of Object.entries({ consent: pages.consent(KNOWN), account: pages.account(ACCOUNT) }))
    await inTab(browser, { viewport: { width: 560, height: 420 } }, async tab => {
      await tab.setContent(html)
      await savePicture(tab, `auth-bridge-${name}.png`, true)
    })
}

const CLIENTS = ['claude-code', 'cursor', 'vscode'] as const

async function saveConsole(browser: Browser): Promise<void> {
  await bundleConsole(join(ROOT, 'dist/plugins/console/page'))
  const tool = (name: string, access: string | undefined, milliseconds: number, isSafe = true) =>
    defineTool({
      name,
      ...(access !== undefined && { access }),
      annotations: { readOnlyHint: isSafe },
      input: { type: 'object', properties: { customer: { type: 'string' } } },
      handler: async ({ customer }) => {
        await setTimeout(milliseconds)
        if (customer === 'none') throw new ToolError('There is no such customer.')
        return 'done'
      },
    })
  const log = createTestLog()
  const config = {
    server: { name: 'acme-tools', version: '1.4.0', title: 'Acme Tools' },
    http: { host: '127.0.0.1', port: 0 },
    secrets: ['for pictures only, at least 32 characters'],
    toolsets: {
      orders: [
        tool('orders_search', undefined, 14),
        tool('orders_get', undefined, 5),
        tool('orders_cancel', 'orders', 30, false),
        tool('invoices_export', 'finance', 60),
        tool('customers_delete', 'admin', 20, false),
      ],
    },
    routes: { '/mcp': { toolsets: 'orders', authorize: true as const } },
    plugins: {
      'transport-streamable': {},
      'bearer-json': bearerJson(),
      'tool-policy': {
        policies: { orders: { scope: 'orders:write' }, finance: { role: 'finance' }, admin: { role: 'admin' } },
      },
      console: { port: 0 },
    },
  }
  const host = await createHost(config, { log })
  await host.listen()
  const loginUrl = new URL(String(log.lines.find(({ code }) => code === 'MH3608')?.['url']))
  const tools = ['orders_search', 'orders_search', 'orders_get', 'orders_search', 'orders_cancel', 'invoices_export']
  const call = (index: number) =>
    modern(
      `${host.url}/mcp`,
      'tools/call',
      { name: tools[index % tools.length], arguments: { customer: index % 23 === 0 ? 'none' : 'c7' } },
      {
        headers: as({
          subject: `user-${index % 5}`,
          scopes: index % 4 === 0 ? [] : ['orders:write'],
          roles: ['finance'],
        }),
        meta: { [META.clientInfo]: { name: CLIENTS[index % CLIENTS.length], version: '2.1.0' } },
      },
    )
  await inTab(browser, { viewport: { width: 1_280, height: 720 } }, async tab => {
    await tab.goto(loginUrl.href)
    await tab.waitForSelector('text=Busiest tools')
    for (let second = 0, index = 0; second < 20; second++) {
      const calls = Array.from({ length: 12 + Math.round(8 * Math.sin(second / 3)) }, () => call(index++))
      await Promise.all([...calls, setTimeout(1_000)])
    }
    for (const [name, path] of Object.entries({ overview: '/', calls: '/calls', access: '/access' })) {
      await tab.goto(loginUrl.origin + path)
      await tab.waitForSelector('main table, main .tiles')
      await tab.waitForSelector('text=Live')
      await savePicture(tab, `console-${name}.png`)
    }
  })
  await host.close()
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

async function saveWebsite(browser: Browser): Promise<void> {
  for (const [name, path] of Object.entries({ home: '/index.html', config: '/docs/config.html' }))
    await inTab(browser, { viewport: { width: 1_280, height: 800 } }, async tab => {
      await tab.route('http://site.example/**', async route => {
        const file = join(SITE, new URL(route.request().url()).pathname)
        await route.fulfill({ body: readFileSync(file), contentType: TYPES[extname(file)] ?? 'text/html' })
      })
      await tab.goto(`http://site.example${path}`, { waitUntil: 'networkidle' })
      await savePicture(tab, `website-${name}.png`)
    })
}

const STYLES: Readonly<Record<string, string>> = { 1: 'font-weight="bold"', 31: 'fill="#ff7b72"', 33: 'fill="#e3b341"' }

/** Draws the lines of a terminal of 80 columns. */
function terminalSvg(lines: readonly string[], title: string): string {
  const toXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll(' ', '\u00a0')
  const drawn = lines.map((line, index) => {
    const spans = line.split('\x1b[').map((part, at) => {
      const [, style = '', text = ''] = at === 0 ? ['', '', part] : (/^(\d+)m(.*)$/.exec(part) ?? [])
      return text && `<tspan ${STYLES[style] ?? ''}>${toXml(text)}</tspan>`
    })
    return `<text x="16" y="${30 + index * 18}">${spans.join('')}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="660" height="${lines.length * 18 + 32}" role="img">
<title>${title}</title>
<rect width="100%" height="100%" rx="8" fill="#16191d"/>
<g fill="#e6edf3" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
${drawn.join('\n')}
</g>
</svg>
`
}

async function saveStartScreen(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-'))
  const cli = [process.execPath, '--import', import.meta.resolve('tsx'), join(ROOT, 'cli/bin.ts')]
  const env = { ...process.env, npm_execpath: 'npm', TERM: 'xterm' }
  spawnSync(cli[0] ?? '', [...cli.slice(1), 'init', folder, '--name', 'my-server', '--protected', '--yes'], { env })
  // The folder has no node_modules.
  const core = pathToFileURL(join(ROOT, 'core/index.ts')).href
  for (const file of spawnSync('grep', ['-rl', "from 'mcp-host'", folder], { encoding: 'utf8' }).stdout.split('\n')) {
    if (file) writeFileSync(file, readFileSync(file, 'utf8').replaceAll("from 'mcp-host'", `from '${core}'`))
  }
  const command = `stty cols 80 rows 40; exec ${[...cli, 'dev'].map(word => `'${word}'`).join(' ')}`
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  for await (const data of child.stdout) {
    text += data
    // MH1031 is the last warning of the first screen.
    if (/MH1031[\s\S]*\n\r?\n/.test(text)) child.stdin.write('q')
  }
  rmSync(folder, { recursive: true })
  const lines = text.replaceAll('\r', '').split('\n\n').slice(0, 4).join('\n\n').split('\n')
  writeFileSync(pictureFile('start-screen.svg'), terminalSvg(lines, 'mcp-host dev'))
}

const places = (process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, 'chromium'))
const browser = await chromium.launch({
  executablePath: places.find(place => existsSync(place)) ?? 'chromium',
  chromiumSandbox: process.getuid?.() !== 0,
})
/** Without names on the command line: all. */
const wanted = process.argv.slice(2)
const savers = {
  'endpoint-page': saveEndpointPage,
  'auth-bridge': saveBridgePages,
  console: saveConsole,
  website: saveWebsite,
  'start-screen': saveStartScreen,
}
for (const [name, save] of Object.entries(savers)) if (wanted.length === 0 || wanted.includes(name)) await save(browser)
await browser.close()
