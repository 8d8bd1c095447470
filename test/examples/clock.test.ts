// Tests the clock example: time zone conversion around daylight saving changes.
import { expect } from 'chai'
import { ToolError } from 'mcp-host'
import { convertTime, currentTime, listTimeZones } from '../../examples/clock/clock.ts'
import { findMoment, parseLocal, readInZone } from '../../examples/clock/zone-time.ts'
import { callTool, rejectionOf } from './call-tool.ts'

interface Converted {
  utc: string
  occurs: string
  note?: string
  from: { zone: string; local: string; offset: string; weekday: string }
  to: Array<{ zone: string; local: string; offset: string; weekday: string }>
}

const convert = (time: string, from: string, ...to: string[]) => callTool<Converted>(convertTime, { time, from, to })

describe('examples/clock', () => {
  describe('convert_time', () => {
    it('converts a local time to several zones, across the date line', async () => {
      const { utc, occurs, note, from, to } = await convert(
        '2026-01-15T20:30',
        'Asia/Tokyo',
        'Europe/Paris',
        'Pacific/Honolulu',
        'Pacific/Kiritimati',
      )
      expect({ utc, occurs, note }).to.deep.equal({ utc: '2026-01-15T11:30:00.000Z', occurs: 'once', note: undefined })
      expect(from).to.deep.equal({
        zone: 'Asia/Tokyo',
        local: '2026-01-15T20:30:00',
        offset: '+09:00',
        weekday: 'Thursday',
      })
      expect(to.map(({ local, offset }) => local + offset)).to.deep.equal([
        '2026-01-15T12:30:00+01:00',
        '2026-01-15T01:30:00-10:00',
        '2026-01-16T01:30:00+14:00',
      ])
    })

    it('uses the first occurrence of an ambiguous time and reports the second', async () => {
      const { utc, occurs, note } = await convert('2026-10-25T02:30', 'Europe/Paris', 'UTC')
      expect({ utc, occurs }).to.deep.equal({ utc: '2026-10-25T00:30:00.000Z', occurs: 'twice' })
      expect(note).to.contain('2026-10-25T01:30:00.000Z')
    })

    it('shifts a skipped local time by the width of the gap and reports it', async () => {
      const { utc, occurs, note, from } = await convert('2026-03-29T02:30', 'Europe/Paris', 'UTC')
      expect({ utc, occurs }).to.deep.equal({ utc: '2026-03-29T01:30:00.000Z', occurs: 'never' })
      expect(from).to.include({ local: '2026-03-29T03:30:00', offset: '+02:00' })
      expect(note).to.contain('never occurs')
    })

    const edges: Array<[time: string, zone: string, occurs: string, utc: string, why: string]> = [
      ['2026-03-29T01:59:59', 'Europe/Paris', 'once', '2026-03-29T00:59:59.000Z', 'the last second before a gap'],
      ['2026-03-29T02:00', 'Europe/Paris', 'never', '2026-03-29T01:00:00.000Z', 'the first second of a gap'],
      ['2026-03-29T03:00', 'Europe/Paris', 'once', '2026-03-29T01:00:00.000Z', 'the first second after a gap'],
      ['2026-10-25T01:59:59', 'Europe/Paris', 'once', '2026-10-24T23:59:59.000Z', 'the last second before an overlap'],
      ['2026-10-25T02:00', 'Europe/Paris', 'twice', '2026-10-25T00:00:00.000Z', 'the first second of an overlap'],
      ['2026-10-25T03:00', 'Europe/Paris', 'once', '2026-10-25T02:00:00.000Z', 'the first second after an overlap'],
      ['2026-11-01T01:30', 'America/New_York', 'twice', '2026-11-01T05:30:00.000Z', 'an overlap west of UTC'],
      ['2026-10-04T02:15', 'Australia/Lord_Howe', 'never', '2026-10-03T15:45:00.000Z', 'a gap of half an hour'],
      ['2026-04-05T01:45', 'Australia/Lord_Howe', 'twice', '2026-04-04T14:45:00.000Z', 'an overlap of half an hour'],
      ['2011-12-30T12:00', 'Pacific/Apia', 'never', '2011-12-30T22:00:00.000Z', 'a whole day that Samoa skipped'],
      ['2011-12-29T23:59', 'Pacific/Apia', 'once', '2011-12-30T09:59:00.000Z', 'the minute before it'],
      ['2011-12-31T00:00', 'Pacific/Apia', 'once', '2011-12-30T10:00:00.000Z', 'the minute after it'],
      ['2026-07-01T12:00', 'Asia/Kathmandu', 'once', '2026-07-01T06:15:00.000Z', 'an offset with minutes'],
    ]
    for (const [time, zone, occurs, utc, why] of edges) {
      it(`parses ${why}: ${time} in ${zone}`, async () => {
        expect(await convert(time, zone, 'UTC')).to.include({ occurs, utc })
      })
    }

    it('rejects an invalid local time with an error for the model', async () => {
      for (const time of [
        '2026-02-30T10:00',
        '2026-13-01T10:00',
        '24:00',
        '10:60',
        '2026-01-01',
        '2026-01-01T10:00Z',
        'noon',
        '',
      ]) {
        expect(await rejectionOf(convert(time, 'UTC', 'UTC')), time).to.be.instanceOf(ToolError)
      }
    })

    it('reports an unknown time zone', async () => {
      const error = await rejectionOf(convert('10:00', 'UTC', 'Europe/Paris', 'Europe/Atlantis'))
      expect(error).to.be.instanceOf(ToolError).with.property('message').that.contains('Europe/Atlantis')
    })
  })

  describe('time without a date', () => {
    it("uses today's date in its own zone, not in UTC", () => {
      const now = Date.parse('2026-06-30T22:00:00Z')
      expect(parseLocal('09:15', 'Asia/Tokyo', now)).to.equal(Date.parse('2026-07-01T09:15:00Z'))
      expect(parseLocal('09:15', 'America/New_York', now)).to.equal(Date.parse('2026-06-30T09:15:00Z'))
    })
  })

  it('property: local times round-trip every half hour around clock changes', () => {
    const changes = [
      ['Europe/Paris', '2026-03-28', '2026-10-24'],
      ['America/St_Johns', '2026-03-07', '2026-10-31'],
      ['Australia/Lord_Howe', '2026-04-04', '2026-10-03'],
      ['Pacific/Apia', '2011-12-29'],
    ]
    for (const [zone = '', ...days] of changes) {
      for (const start of days.map(day => Date.parse(day))) {
        for (let instant = start; instant < start + 3 * 86_400_000; instant += 1_800_000) {
          const moment = findMoment(Date.parse(`${readInZone(instant, zone).local}Z`), zone)
          const found = moment.occurs === 'twice' ? [moment.instant, moment.second] : [moment.instant]
          expect(moment.occurs === 'never' ? [] : found, `${zone} ${instant}`).to.include(instant)
        }
      }
    }
  })

  describe('current_time', () => {
    it('returns one moment in each zone, in the requested order', async () => {
      const zones = ['Asia/Tokyo', 'UTC']
      const { utc, times } = await callTool<{ utc: string; times: Converted['to'] }>(currentTime, { zones })
      expect(times.map(({ zone }) => zone)).to.deep.equal(zones)
      expect(times[1]?.local).to.equal(utc.slice(0, 19))
      expect(Date.parse(`${times[0]?.local}Z`) - Date.parse(`${times[1]?.local}Z`)).to.equal(9 * 3_600_000)
    })

    it('defaults to UTC', async () => {
      const { times } = await callTool<{ times: Converted['to'] }>(currentTime, {})
      expect(times.map(({ zone, offset }) => zone + offset)).to.deep.equal(['UTC+00:00'])
    })
  })

  describe('list_time_zones', () => {
    const list = async (query?: string) =>
      (await callTool<{ zones: string[] }>(listTimeZones, query === undefined ? {} : { query })).zones

    it('lists every Intl time zone and UTC', async () => {
      expect(await list()).to.include.members(['UTC', ...Intl.supportedValuesOf('timeZone')])
    })

    it('filters by part of the name, with spaces and in any case', async () => {
      expect(await list('NEW york')).to.deep.equal(['America/New_York'])
    })

    it('finds a city by an alias that Intl accepts but does not list', async () => {
      expect(await list('kolkata')).to.include('Asia/Kolkata')
    })

    it('returns an empty list for an unknown name', async () => {
      expect(await list('atlantis')).to.deep.equal([])
    })
  })
})
