import { expect, test } from 'vitest'
import { provenBy, readCatalogue } from './catalogue.ts'

test('every document of the catalogue has ids, and none stands twice', () => {
  const areas = readCatalogue()
  expect(areas.map(({ name }) => name)).toEqual(['agent-tools', 'field-cases', 'provider-tools', 'tools', 'web-mcp'])
  for (const { ids } of areas) expect(ids.length).toBeGreaterThan(40)
})

test('a title proves the ids it begins with, and no others', () => {
  expect(provenBy('F-22 refuses an https to http redirect')).toEqual(['F-22'])
  expect(provenBy('OM-W06, BR-101 judge the status first')).toEqual(['OM-W06', 'BR-101'])
  expect(provenBy('refuses what F-22 says')).toEqual([])
  expect(provenBy('says F-22')).toEqual([])
  expect(provenBy('G4 BR-120 no read goes out')).toEqual(['BR-120'])
  expect(provenBy('CP-18 G1 BR-120 and E1')).toEqual(['CP-18', 'BR-120'])
  expect(provenBy('A sleep BR-125')).toEqual([])
})
