// Checks the links, anchors, scripts and pictures of the built website and of `llms.txt`. `npm run build` runs it last.
// linkinator 7.6 checks the same, but it takes 12 s of CPU time and reports files as missing when the machine is busy.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const DIST = join(import.meta.dirname, 'dist')
const BASE = 'http://site.example'

/** Returns the file that a web server with clean URLs serves. Folders have precedence, as on many servers. */
function resolveFile(path) {
  const file = join(DIST, decodeURI(path))
  if (existsSync(file)) return statSync(file).isDirectory() ? join(file, 'index.html') : file
  return `${file}.html`
}

const readAttributes = (html, names) =>
  [...html.matchAll(new RegExp(`\\s(?:${names})="([^"]*)"`, 'g'))].map(([, value]) =>
    value.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&'),
  )

const pages = readdirSync(DIST, { recursive: true }).filter(file => file.endsWith('.html') && file !== '404.html')
const anchors = new Map(
  pages.map(page => [join(DIST, page), new Set(readAttributes(readFileSync(join(DIST, page), 'utf8'), 'id'))]),
)

const llms = readFileSync(join(DIST, 'llms.txt'), 'utf8')
const links = [
  ...pages.flatMap(page => {
    const targets = new Set(readAttributes(readFileSync(join(DIST, page), 'utf8'), 'href|src'))
    return [...targets].map(target => ({ page, target }))
  }),
  ...[...llms.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => ({ page: 'llms.txt', target })),
]

const dead = links.filter(({ page, target }) => {
  const { origin, pathname, hash } = new URL(target, `${BASE}/${page}`)
  if (origin !== BASE) return false
  const file = resolveFile(pathname)
  if (!existsSync(file)) return true
  return hash !== '' && anchors.has(file) && !anchors.get(file).has(decodeURIComponent(hash.slice(1)))
})
for (const { page, target } of dead) console.error(`${page}: dead link: ${target}`)
console.log(`Checked ${links.length} links of ${pages.length} pages: ${dead.length} dead.`)
if (dead.length > 0 || pages.length === 0) process.exit(1)
