// A step of `npm run build`: editors show what options mean. The types of options are inferred from schemas, which `tsc` writes
// into the declarations of `dist`; here each described property gets a comment. It also adds the built-in plugins to the types
// of every program that imports a config's.
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from '@babel/parser'
import { type Node, traverseFast } from '@babel/types'

const DIST = fileURLToPath(new URL('../dist', import.meta.url))

/** The members of the type of a schema, which may be an intersection. */
function listMembers(type: Node | null | undefined): Node[] {
  if (type?.type === 'TSTypeLiteral') return type.members
  return type?.type === 'TSIntersectionType' ? type.types.flatMap(listMembers) : []
}

/** The declarations with a comment before each property whose schema has a description. */
export function withComments(declarations: string): string {
  const comments = new Map<number, string>()
  traverseFast(parse(declarations, { sourceType: 'module', plugins: [['typescript', { dts: true }]] }), node => {
    if (node.type !== 'TSPropertySignature') return
    const texts = new Map<string, string>()
    for (const member of listMembers(node.typeAnnotation?.typeAnnotation)) {
      if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier') continue
      const { start, end } = member.typeAnnotation?.typeAnnotation ?? {}
      texts.set(member.key.name, declarations.slice(start ?? 0, end ?? 0).replace(/\breadonly (?=\[)/g, ''))
    }
    const description = /^(['"])(.*)\1$/s.exec(texts.get('description') ?? '')?.[2]?.replaceAll(/\\(['"])/g, '$1')
    const standard = texts.get('default')
    const isShown = standard !== undefined && !/^\{|^string|^number/.test(standard)
    if (description === undefined || node.start == null) return
    const text = `${description}${isShown ? ` Default \`${standard}\`.` : ''}`.replaceAll('*/', '*\\/')
    comments.set(node.start, `/** ${text} */ `)
  })
  return [...comments]
    .reverse()
    .reduce((text, [at, comment]) => text.slice(0, at) + comment + text.slice(at), declarations)
}

export function documentTypes(dist: string): void {
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const text = name.endsWith('.d.ts') ? readFileSync(join(dist, name), 'utf8') : ''
    if (text.includes('description: ')) writeFileSync(join(dist, name), withComments(text))
  }
  appendFileSync(join(dist, 'core/config/define-config.d.ts'), "import type {} from '../../plugins/index.ts';\n")
}

if (process.argv[1] === fileURLToPath(import.meta.url)) documentTypes(process.argv[2] ?? DIST)
