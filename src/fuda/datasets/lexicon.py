"""The words of the product-usage corpus. All names of products, vendors and people are invented.

A *frame* is a predicate, written ``mood: verb [particle] [preposition] [to verb | verb-ing]``; the product
is the object of its last verb, and the mood a key of ``ACTIVE`` or ``PASSIVE``. The frames of a status, and
not its products, vendors, numbers or reasons, say whether the customer uses, wants or rejects a product.
"""

from __future__ import annotations

# The name of hardware is brand and category, that of software its brand, or brand and module.
HARDWARE_BRANDS = ["Velotra", "Brindane", "Trennoch", "Morvique", "Umbrano", "Hestrix"]
CATEGORIES = ["scanner", "printer", "router", "camera", "pump"]
SOFTWARE_BRANDS = ["Quandrisk", "Wendrillo", "Taskarra", "Plenthra"]
MODULES = ["Ledger", "Planner", "Roster"]
UNITS = ["licence", "seat"]
VENDORS = ["Ostrivane", "Nordquill", "Ambrask", "Skelbury", "Pelthorne", "Keldwyn"]
PRODUCT_ADJECTIVES = ["compact", "grey", "portable", "second-hand", "heavy", "small", "large", "quiet"]
NUMBERS = ["six", "twelve", "15", "24", "thirty", "40", "60", "75"]

PEOPLE = ["Mrs. Okafor", "Mr. Vries", "Ms. Lindqvist", "Mr. Tanaka", "Mrs. Moreau", "Mr. Haddad", "Ms. Novak"]
ORGANIZATIONS = [
    "clinic",
    "school",
    "library",
    "hotel",
    "bakery",
    "warehouse",
    "laboratory",
    "museum",
    "shipyard",
    "brewery",
    "dairy",
    "theatre",
]
GROUPS = ["engineer", "manager", "driver", "technician", "buyer", "clerk", "guard", "cook"]
CITIES = [
    "Delft",
    "Turku",
    "Ghent",
    "Porto",
    "Graz",
    "Bergen",
    "Lund",
    "Cork",
    "Leeds",
    "Bremen",
    "Tartu",
    "Basel",
    "Lyon",
    "Aarhus",
]
MONTHS = ["January", "March", "April", "May", "June", "August", "October", "November"]
DATES = ["6", "15", "24"]
PLAIN_NUMBERS = ["15", "24", "40", "60", "75"]  # of rooms and pages
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]

# Reasons hold for buying as well as for refusing, so that the words of a reason do not give the status away.
CIRCUMSTANCES = ["budget", "lease", "contract", "tax rules", "safety rules", "floor plan", "service fees"]
EVENTS = ["merger", "audit", "move"]
REASON_ADJECTIVES = ["new", "local", "recent"]
REASON_STATES = ["different", "final"]
REASON_ACTIVE = ["past: change", "perfect: change"]
REASON_PASSIVE = "past: revise"
REASON_PREPOSITIONS = ["because of", "owing to", "due to"]

SITES = ["annex", "night shift", "second floor", "front desk", "archive", "main site", "basement", "new wing"]
ASIDES = [
    "after a short meeting",
    "after the visit",
    "after a long talk",
    "despite our offer",
    "after some debate",
    "after two trials",
    "after the last audit",
    "after a short trial",
]
MANNERS = ["apparently", "clearly", "reportedly", "certainly", "evidently", "officially"]
SUBORDINATORS = ["while", "although", "whereas", "though"]
TIMES = {
    "past": ["last year", "last week", "last month", "last autumn"],
    "present": ["at present", "these days", "this year", "at the moment", "this season"],
    "open": ["this year", "this week", "this month", "this spring"],
}

ACTIVE_FRAMES = {
    "D": [
        "present: use",
        "present: run",
        "present: rely on",
        "past: install",
        "past: start using",
        "perfect: buy",
        "never: stop using",
    ],
    "P": [
        "present: want",
        "present: need",
        "present: hope to use",
        "progressive: consider",
        "past: order",
        "past: ask for",
        "would: like to buy",
    ],
    "R": [
        "not: want",
        "not: need",
        "present: refuse to use",
        "no longer: use",
        "past: reject",
        "past: turn down",
        "past: stop using",
    ],
    "O": [
        "past: present",
        "past: show",
        "past: describe",
        "past: mention",
        "perfect: offer",
        "present: sell",
    ],
}
PASSIVE_FRAMES = {
    "D": [
        "present: use",
        "past: install",
        "perfect: buy",
        "never: reject",
    ],
    "P": [
        "present: want",
        "progressive: consider",
        "past: order",
        "past: request",
    ],
    "R": [
        "not: want",
        "no longer: use",
        "past: reject",
        "past: turn down",
    ],
    "O": [
        "past: present",
        "past: show",
        "past: describe",
        "past: mention",
        "perfect: offer",
        "present: sell",
    ],
}
RECIPIENT_VERBS = {"present", "show", "describe", "mention"}
REPORT_FRAMES = ["past: report", "past: say", "past: note", "past: hear", "past: learn", "past: confirm"]
ASIDE_FRAMES = ["past: note", "past: report", "past: confirm", "past: explain"]
PRESENTATION_FRAMES = ["past: present", "past: show", "past: describe", "past: mention"]
TOPIC_FRAMES = ["past: come up", "past: mention", "past: discuss", "past: show"]  # passive but for the first

# A mood is auxiliaries and a form of the verb; words in capitals agree with the subject.
ACTIVE = {
    "present": "PRESENT",
    "past": "past",
    "perfect": "HAVE participle",
    "progressive": "BE gerund",
    "not": "DO not base",
    "never": "HAVE never participle",
    "no longer": "no longer PRESENT",
    "would": "would base",
}
PASSIVE = {
    "present": "BE participle",
    "past": "WAS participle",
    "perfect": "HAVE been participle",
    "progressive": "BE being participle",
    "not": "BE not participle",
    "never": "HAVE never been participle",
    "no longer": "BE no longer participle",
}
AGREEMENT = {"HAVE": ("has", "have"), "BE": ("is", "are"), "WAS": ("was", "were"), "DO": ("does", "do")}
TENSES = {
    "past": "past",
    "present": "present",
    "progressive": "present",
    "not": "present",
}  # all others: open

AUXILIARIES = {
    form: lemma
    for lemma, forms in {
        "have": "has have",
        "be": "is are was were been being",
        "do": "does do",
        "would": "would",
    }.items()
    for form in forms.split()
}
PARTICLES = {"down", "up"}
PREPOSITIONS = {"on", "for"}

# lemma, present, past, participle, gerund
VERBS = {
    forms[0]: dict(zip(("base", "present", "past", "participle", "gerund"), forms, strict=True))
    for forms in map(
        str.split,
        """
        ask asks asked asked asking
        buy buys bought bought buying
        change changes changed changed changing
        come comes came come coming
        confirm confirms confirmed confirmed confirming
        consider considers considered considered considering
        describe describes described described describing
        discuss discusses discussed discussed discussing
        explain explains explained explained explaining
        hear hears heard heard hearing
        hope hopes hoped hoped hoping
        install installs installed installed installing
        learn learns learned learned learning
        like likes liked liked liking
        mention mentions mentioned mentioned mentioning
        need needs needed needed needing
        note notes noted noted noting
        offer offers offered offered offering
        order orders ordered ordered ordering
        present presents presented presented presenting
        refuse refuses refused refused refusing
        reject rejects rejected rejected rejecting
        rely relies relied relied relying
        report reports reported reported reporting
        request requests requested requested requesting
        revise revises revised revised revising
        run runs ran run running
        say says said said saying
        sell sells sold sold selling
        show shows showed shown showing
        start starts started started starting
        stop stops stopped stopped stopping
        turn turns turned turned turning
        use uses used used using
        want wants wanted wanted wanting
        """.strip().splitlines(),
    )
}
GERUNDS = {forms["gerund"]: lemma for lemma, forms in VERBS.items()}

# Part of speech of the words in noun phrases; capitalised words are PROPN, digits NUM, all others NOUN.
TAGS = {
    word: tag
    for tag, words in {
        "DET": "the a this these some",
        "ADP": "in on at for of to after despite because owing due",
        "ADJ": "last short long second main",
        "PRON": "our",
        "NUM": "two",
    }.items()
    for word in words.split()
}
TAGS |= dict.fromkeys([*PRODUCT_ADJECTIVES, *REASON_ADJECTIVES, *REASON_STATES], "ADJ")
LEMMAS = {"longer": "long", "these": "this", "days": "day", "trials": "trial", "rules": "rule", "fees": "fee"}
LEMMAS |= {group + "s": group for group in GROUPS}
