// The website: a home page, the Markdown pages of the repository, and the reference. `npm run docs` builds it.
// The build fails on dead links, dead anchors, and pages that are missing in the sidebar.
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { globSync } from 'tinyglobby'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { writeLlmsText } from '../llms.ts'
import { extendMarkdown } from '../markdown.ts'
import { anchorOf, COPIED, REWRITES, UNPUBLISHED } from '../published.ts'

const ROOT = join(import.meta.dirname, '../..')

const page = (text: string, link: string) => ({ text, link })

const plugins = readdirSync(join(ROOT, 'docs/plugins'))
  .filter(file => file.endsWith('.md') && file !== 'README.md')
  .map(file => page(file.slice(0, -3), `/docs/plugins/${file.slice(0, -3)}`))

const sections: DefaultTheme.SidebarItem[] = [
  {
    text: 'Getting started',
    items: [
      page('Overview', '/overview'),
      page('Tutorial: run a server', '/docs/tutorials/operator'),
      page('Tutorial: write tools', '/docs/tutorials/tools'),
      page('Tutorial: write a plugin', '/docs/tutorials/plugin'),
      page('Tutorial: call servers', '/docs/tutorials/client'),
      page('Examples', '/examples/'),
      page('Example: protected server', '/examples/protected/'),
      page('Example: three nodes', '/examples/scaling/'),
      page('Example: company login', '/examples/bridge/'),
    ],
  },
  {
    text: 'Configure and run',
    items: [
      page('Config', '/docs/config'),
      page('Command line', '/docs/cli'),
      page('Protection', '/docs/protection'),
      page('Lock file', '/docs/lock'),
      page('Existing MCP servers', '/docs/upstream'),
      page('HTTP APIs', '/docs/openapi'),
      page('Connect a client', '/docs/connect'),
      page('Proxy', '/docs/proxy'),
      page('Operation', '/docs/operating'),
      page('Logs', '/docs/logs'),
      page('Limits', '/docs/limits'),
      page('Deployment', '/docs/deploy'),
      page('Scaling', '/docs/scaling'),
      page('Redis', '/docs/redis'),
      page('Embedding', '/docs/embedding'),
      page('Errors', '/docs/errors'),
      page('Troubleshooting', '/docs/troubleshooting'),
      page('Codes', '/docs/codes'),
      page('Codes of plugins', '/docs/codes-plugins'),
    ],
  },
  {
    text: 'Develop',
    items: [
      page('Tools, resources, prompts', '/docs/tools'),
      page('Testing', '/docs/testing'),
      page('Write plugins', '/docs/write-plugins'),
      page('OAuth client', '/docs/client'),
      page('Migrate from the official SDK', '/docs/migrate-from-sdk'),
      page('Migrate from FastMCP', '/docs/migrate-from-fastmcp'),
    ],
  },
  {
    text: 'Plugins',
    collapsed: true,
    items: [page('Built-in plugins', '/docs/plugins/'), ...plugins],
  },
  {
    text: 'Identity providers',
    collapsed: true,
    items: [
      page('Choose a provider', '/docs/bridge/'),
      page('Microsoft Entra ID', '/docs/bridge/entra'),
      page('Okta', '/docs/bridge/okta'),
      page('Google', '/docs/bridge/google'),
      page('GitHub', '/docs/bridge/github'),
      page('Auth0', '/docs/bridge/auth0'),
      page('Keycloak', '/docs/bridge/keycloak'),
      page('Other providers', '/docs/bridge/oidc'),
      page('Login without a browser', '/docs/enterprise-authorization'),
      page('Threat model', '/docs/bridge/threat-model'),
    ],
  },
  {
    text: 'Deployment files',
    collapsed: true,
    items: [
      page('Overview', '/examples/deploy/'),
      page('Docker', '/examples/deploy/docker/'),
      page('Kubernetes', '/examples/deploy/kubernetes/'),
      page('systemd', '/examples/deploy/systemd/'),
      page('nginx', '/examples/deploy/nginx/'),
      page('Caddy', '/examples/deploy/caddy/'),
    ],
  },
  {
    text: 'Project',
    collapsed: true,
    items: [
      page('Changelog', '/CHANGELOG'),
      page('Known limitations', '/docs/limitations'),
      page('Performance', '/docs/performance'),
      page('Architecture', '/docs/architecture'),
      page('Security', '/SECURITY'),
      page('Security tests', '/docs/security-tests'),
      page('Dependencies', '/docs/dependencies'),
      page('Contributing', '/CONTRIBUTING'),
    ],
  },
  {
    text: 'Internals',
    collapsed: true,
    items: [
      page('Performance', '/docs/internals/performance'),
      page('Config', '/docs/internals/config'),
      page('auth-bridge', '/docs/internals/auth-bridge'),
      page('audit', '/docs/internals/audit'),
      page('DPoP', '/docs/internals/dpop'),
      page('Redis keys', '/docs/internals/redis-keys'),
    ],
  },
]

/** Adds links to the sections. VitePress 1.6 nests two buttons in sections without a link. */
const guides = sections.map(section => ({ ...section, link: section.items?.[0]?.link ?? '/' }))

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  description: string
  license: string
  exports: Record<string, string | { types: string }>
  repository?: string | { url: string }
}

/** The pages of the symbols of an entry, such as `/reference/mcp-host/plugin/functions/createKey`. */
function listSymbolPages(entry: string): DefaultTheme.SidebarItem[] {
  const folder = `reference/${entry}`
  return globSync('{classes,functions,interfaces,type-aliases,variables}/*.md', { cwd: join(ROOT, 'site', folder) })
    .map(file => page(basename(file, '.md'), `/${folder}/${file.slice(0, -3)}`))
    .sort((one, other) => one.text.localeCompare(other.text))
}

const reference: DefaultTheme.SidebarItem[] = [
  page('All entries', '/reference/'),
  ...Object.entries(manifest.exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([path]) => `mcp-host${path.slice(1)}`)
    .map(entry => ({
      text: entry,
      link: `/reference/${entry}/`,
      collapsed: entry !== 'mcp-host',
      items: listSymbolPages(entry),
    })),
]

/** The URL of the repository, if package.json has one. */
const { repository = '' } = manifest
const repositoryUrl = (typeof repository === 'string' ? repository : repository.url)
  .replace(/^github:/, 'https://github.com/')
  .replace(/^git\+/, '')
  .replace(/\.git$/, '')

const toUrl = (path: string) => `/${path.replace(/(?<=^|\/)index\.md$|\.md$/, '')}`

const collectLinks = (items: readonly DefaultTheme.SidebarItem[]): string[] =>
  items.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...collectLinks(items)])

/** Throws for a page that is not in the sidebar, and for a sidebar entry without a page. */
function checkSidebar(pages: readonly string[]): void {
  const linked = new Set(collectLinks([...guides, ...reference]))
  const served = new Set(pages.map(toUrl))
  served.delete('/')
  const missing = [...served].filter(path => !linked.has(path))
  const dead = [...linked].filter(path => !served.has(path))
  if (missing.length > 0) throw new Error(`Pages that are missing in the sidebar: ${missing.join(', ')}`)
  if (dead.length > 0) throw new Error(`Sidebar entries without a page: ${dead.join(', ')}`)
}

/** Resolves `vue` from this folder in the server build, because the pages are outside of it. */
const resolveVueHere = {
  name: 'resolve-vue-here',
  enforce: 'pre' as const,
  resolveId(source: string, importer: string | undefined, { ssr }: { ssr?: boolean }) {
    const isOutside = ssr && importer?.endsWith('.md') && /^vue(?:\/|$)/.test(source)
    return isOutside ? this.resolve(source, import.meta.filename, { skipSelf: true }) : undefined
  },
}

/** Only Node.js loads the server build, so unused code in it does no harm, and its analysis takes seconds. */
const keepUnusedOnServer = {
  name: 'keep-unused-on-server',
  config: (_config: unknown, { isSsrBuild }: { isSsrBuild?: boolean }) =>
    isSsrBuild ? { build: { rollupOptions: { treeshake: false } } } : undefined,
}

export default defineConfig({
  title: 'mcp-host',
  description: manifest.description,
  lang: 'en',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/logo.svg' }]],
  srcDir: ROOT,
  srcExclude: UNPUBLISHED,
  outDir: join(import.meta.dirname, '../dist'),
  rewrites: REWRITES,
  cleanUrls: true,
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: extendMarkdown,
  },
  vite: {
    publicDir: join(import.meta.dirname, '../public'),
    // The search index is one large chunk.
    build: { chunkSizeWarningLimit: 4096 },
    plugins: [resolveVueHere, keepUnusedOnServer],
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Guide', link: '/docs/tutorials/operator', activeMatch: '^/(docs/tutorials/|overview)' },
      { text: 'Config', link: '/docs/config' },
      { text: 'Plugins', link: '/docs/plugins/', activeMatch: '^/docs/plugins/' },
      { text: 'CLI', link: '/docs/cli' },
      { text: 'Reference', link: '/reference/', activeMatch: '^/reference/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: { '/reference/': reference, '/': guides },
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            // Guides rank above the other pages.
            boostDocument: id =>
              /^\/reference\//.test(id) ? 0.1 : /^\/(?:CHANGELOG|docs\/(?:codes|internals))/.test(id) ? 0.3 : 1,
          },
        },
      },
    },
    outline: [2, 3],
    docFooter: { prev: 'Previous page', next: 'Next page' },
    footer: { message: `${manifest.license} licence` },
    ...(repositoryUrl !== '' && {
      socialLinks: [{ icon: 'github', link: repositoryUrl }],
      editLink: { pattern: `${repositoryUrl}/edit/main/:path`, text: 'Edit this page' },
    }),
  },
  // Pages of the reference have no source file to edit.
  transformPageData: ({ relativePath }) =>
    relativePath.startsWith('reference/') ? { frontmatter: { editLink: false } } : {},
  buildEnd({ outDir, pages, rewrites }) {
    const paths = pages.map(path => rewrites.map[path] ?? path)
    checkSidebar(paths)
    // Markdown files, for `llms.txt`, have the paths that their relative links require.
    const markdown = pages.map(path => [path, path.replace(/^site\//, '')] as const)
    const copied = globSync(COPIED, { cwd: ROOT, ignore: ['**/node_modules/**'] }).map(file => [file, file] as const)
    for (const [file, path] of [...markdown, ...copied]) cpSync(join(ROOT, file), join(outDir, path))
    const files = new Map(markdown.map(([, file], index) => [toUrl(paths[index] ?? ''), file]))
    const sections = [...guides, { text: 'Reference', items: reference }]
    writeLlmsText({ title: 'mcp-host', description: manifest.description, sections, files, folder: outDir })
  },
})
