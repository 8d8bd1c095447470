// Screen 10: OAuth clients and grants of the authorization server.
import type { Operator } from '../../core/internal.ts'
import { plainText } from '../../core/transport.ts'
import type { GrantSource, OperatorGrant } from '../families/credentials/index.ts'
import type { GrantRow, Grants, OAuthClientRow } from './api.ts'
import { groupBy } from './stats.ts'

const MAX_TEXT = 64
const MAX_SCOPES = 20
/** Ids of registered clients are long, and differ at their end. */
const MAX_ID = 80
const END = 20

const shortId = (id: string) =>
  plainText(id.length > MAX_ID ? `${id.slice(0, MAX_ID - END)}…${id.slice(-END)}` : id, MAX_ID + 1)

function toClient({ client: { id, name } }: OperatorGrant): GrantRow['client'] {
  return { id: shortId(id), ...(name !== undefined && { name: plainText(name, MAX_TEXT) }) }
}

function toClientRow(grants: readonly OperatorGrant[], fixed: ReadonlySet<string>): OAuthClientRow[] {
  const [newest] = grants
  if (!newest) return []
  const { id, documentHost } = newest.client
  const from = fixed.has(id) ? 'config' : documentHost === undefined ? 'registration' : 'document'
  return [
    {
      ...toClient(newest),
      from,
      grants: grants.length,
      users: new Set(grants.map(({ subject }) => subject)).size,
      firstAt: Math.min(...grants.map(({ since }) => since)),
      lastAt: Math.max(...grants.map(({ since, used = since }) => used)),
    },
  ]
}

async function readFrom(source: GrantSource, { pseudonymOf }: Pick<Operator, 'pseudonymOf'>): Promise<Grants> {
  const { grants, isCut, fixed } = await source.newest()
  const issuer = source.issuer()
  return {
    clients: groupBy(grants, ({ client }) => [client.id]).flatMap(group => toClientRow(group, fixed)),
    grants: grants.map(grant => ({
      client: toClient(grant),
      user: pseudonymOf({ issuer, subject: grant.subject }),
      scopes: grant.scopes.slice(0, MAX_SCOPES).map(scope => plainText(scope, MAX_TEXT)),
      createdAt: grant.since,
      ...(grant.used !== undefined && { usedAt: grant.used }),
    })),
    cut: isCut,
  }
}

export async function readGrants(sources: Iterable<GrantSource>, operator: Operator): Promise<Grants> {
  const found = await Promise.all([...sources].map(source => readFrom(source, operator)))
  return {
    clients: found.flatMap(({ clients }) => clients),
    grants: found.flatMap(({ grants }) => grants),
    cut: found.some(({ cut }) => cut),
  }
}
