// Updates the lists of docs/dependencies.md from package.json and the lock file: `npm run docs:dependencies`. The reasons are
// written in the page itself. It fails for a package without a reason.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const fileAt = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(fileAt(path), 'utf8'))
const PAGE = fileAt('docs/dependencies.md')

/** The lists of the page: `- `name` (licence): reason`. */
const LIST = /(?:^- `[^`]+` \([^)]*\):.*\n)+/gm

/** The page with a line for each package: first the dependencies, then the optional peers, then the development dependencies. */
export function updatePage(page: string): string {
  const { dependencies, peerDependencies, devDependencies } = readJson('package.json')
  const { packages } = readJson('package-lock.json')
  const optional = new Set(Object.keys(peerDependencies))
  const development = Object.keys(devDependencies).filter(name => !optional.has(name) && !name.startsWith('@types/'))
  const lists = [Object.keys(dependencies), Object.keys(peerDependencies), development]
  const reasons = new Map(
    [...page.matchAll(/^- `([^`]+)` \([^)]*\): (.*)$/gm)].map(([, name, reason]) => [name, reason]),
  )
  return page.replace(LIST, () => {
    const lines = (lists.shift() ?? []).map(name => {
      const { license = 'see its LICENSE file' } = packages[`node_modules/${name}`]
      return `- \`${name}\` (${license}): ${reasons.get(name) ?? ''}\n`
    })
    return lines.join('')
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = updatePage(readFileSync(PAGE, 'utf8'))
  writeFileSync(PAGE, page)
  const missing = [...page.matchAll(/^- `([^`]+)` \([^)]*\): $/gm)].map(([, name]) => name)
  if (missing.length > 0) {
    console.error(`docs/dependencies.md: add a reason for ${missing.join(', ')}`)
    process.exitCode = 1
  }
}
