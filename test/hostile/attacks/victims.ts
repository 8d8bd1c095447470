// A legitimate user whose session ids, streams and event ids attackers know.
import { setTimeout as wait } from 'node:timers/promises'
import { message } from '../requests.ts'
import type { Attack } from '../round.ts'
import { inSession, onSession, openSession } from '../session.ts'
import type { Victim } from '../target.ts'

const victims: Attack = {
  kind: 'victims',
  about: 'Alice: sessions whose ids and event ids are known to thieves',
  lanes: 2,
  async run(round) {
    const connection = await round.connect('alice')
    // First of all a guarded route that serves more than its open neighbour: nobody was at either before.
    const path = round.index === 0 ? '/u' : round.chance.pick(['/', '/', '/policed', '/u', '/t'])
    const session = await openSession(round, connection, { path })
    if (!session) return
    const level = { id: 'level', method: 'logging/setLevel', params: { level: 'debug' } }
    connection.send(inSession(round, session, message(level)))
    await round.answers(connection, 2)
    connection.send(inSession(round, session, message({ id: 'list', method: 'tools/list' })))
    await round.answers(connection, 3)
    const victim: Victim = { sessionId: session.id, path, eventIds: [] }
    round.target.victims.push(victim)
    try {
      const reader = await round.connect('alice')
      reader.send(onSession(round, session, 'GET'))
      await round.heads(reader, 1)
      for (let call = 0; call < 3 && !round.over(); call++) {
        const calling = await round.connect('alice')
        const params = { name: 'murmur', arguments: {}, _meta: { progressToken: call } }
        calling.send(
          inSession(round, session, message({ id: call === 0 ? 'murmur' : call, method: 'tools/call', params })),
        )
        await calling.until(() => (calling.text.match(/\nid: /g)?.length ?? 0) > 5, 2_000)
        victim.eventIds.push(...[...calling.text.matchAll(/(?:^|\n)id: (\S+)/g)].map(([, id]) => id ?? ''))
        if (call > 0) await round.answers(calling, 1)
      }
      await wait(100)
    } finally {
      round.target.victims.splice(round.target.victims.indexOf(victim), 1)
    }
  },
}

export const victimAttacks: readonly Attack[] = [victims]
