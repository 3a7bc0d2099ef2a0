"""The words of the product-usage corpus. All names of products, vendors and people are invented.

A *frame* is a predicate in the notation ``mood: verb [particle] [preposition] [to verb | verb-ing]``; the product is the
object of its last verb. The mood is one of the keys of ``ACTIVE`` and ``PASSIVE``. The frames of one status, and not its
products, vendors, numbers or reasons, say whether the customer uses, wants or rejects a product.
"""

from __future__ import annotations

# Hardware is named by brand and category (both tokens are the product's name), software by brand and, at times, module.
HARDWARE_BRANDS = (
    "Velotra Brindane Tessaquil Fennrick Galdora Zephrine Marrowby Ostrelle Umbrano Hestrix Calvento Drossick"
).split()
CATEGORIES = "scanner printer router projector forklift freezer monitor pump camera trolley".split()
SOFTWARE_BRANDS = "Quorvix Nimbrel Taskarra Opaldra Finquill Rotavix Stellamo Arbitane".split()
MODULES = "Ledger Planner Archive Roster Atlas Courier".split()
UNITS = ["licence", "seat"]
VENDORS = (
    "Orbexa Nordquill Ambrask Tellurane Corvessa Dunmarrow Istravo Keldwyn Pavonica Sundhaven Trilligan Wexmoor"
).split()
PRODUCT_ADJECTIVES = "compact grey portable second-hand heavy small large quiet".split()
NUMBERS = "six eight twelve 15 18 twenty 24 thirty 36 40 fifty 60 75 ninety 120".split()

PEOPLE = ["Mrs. Okafor", "Mr. Vries", "Ms. Lindqvist", "Mr. Tanaka", "Mrs. Moreau", "Mr. Haddad", "Ms. Novak"]
ORGANIZATIONS = "clinic school library hotel bakery warehouse laboratory museum shipyard brewery dairy theatre".split()
GROUPS = "engineer manager driver technician buyer clerk guard cook".split()
CITIES = "Delft Turku Ghent Porto Graz Bergen Lund Cork Leeds Bremen Tartu Basel Lyon Aarhus".split()
MONTHS = "January March April May June August October November".split()
DATES = ["15", "18", "24"]
PLAIN_NUMBERS = ["15", "18", "24", "36", "40", "60", "75", "120"]  # of rooms and pages
DAYS = "Monday Tuesday Wednesday Thursday Friday".split()

# Reasons hold for buying as well as for refusing, so that the words of a reason do not give the status away.
CIRCUMSTANCES = [
    *"budget lease warranty contract".split(),
    *("tax rules", "floor plan", "staffing plan", "data policy", "safety rules", "delivery times"),
    *("opening hours", "energy prices", "insurance terms", "service fees"),
]
EVENTS = "merger audit move inspection renovation".split()
REASON_ADJECTIVES = "new recent current local annual revised".split()
REASON_STATES = "different unclear final new".split()
REASON_ACTIVE = ["past: change", "perfect: change", "progressive: change", "will: change"]
REASON_PASSIVE = ["past: revise", "past: publish", "perfect: revise"]
REASON_PREPOSITIONS = ["because of", "owing to", "due to"]

PURPOSES = [
    f"for the {place}"
    for place in (
        "annex",
        "night shift",
        "second floor",
        "front desk",
        "archive",
        "main site",
        "training room",
        "basement",
        "new wing",
        "loading bay",
    )
]
ASIDES = [
    "after a short meeting",
    "after the visit",
    "after a long talk",
    "despite our offer",
    "after some debate",
    "after two trials",
    "after the last audit",
    "after the inspection",
]
MANNERS = "apparently clearly reportedly certainly evidently officially".split()
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
        "present: keep using",
        "past: install",
        "past: adopt",
        "past: start using",
        "perfect: buy",
        "never: stop using",
        "will not: part with",
    ],
    "P": [
        "present: want",
        "present: need",
        "present: plan to buy",
        "present: hope to use",
        "progressive: consider",
        "past: request",
        "past: order",
        "past: ask for",
        "will: install",
        "would: like to use",
    ],
    "R": [
        "not: want",
        "not: need",
        "present: refuse to install",
        "no longer: use",
        "past: reject",
        "past: turn down",
        "past: rule out",
        "past: decide against",
        "past: stop using",
        "will not: buy",
    ],
    "O": [
        "past: present",
        "past: show",
        "past: demonstrate",
        "past: describe",
        "past: mention",
        "present: sell",
        "present: recommend",
        "perfect: offer",
    ],
}
PASSIVE_FRAMES = {
    "D": [
        "present: use",
        "present: run",
        "past: install",
        "past: adopt",
        "perfect: buy",
        "never: reject",
    ],
    "P": [
        "present: want",
        "present: need",
        "progressive: consider",
        "past: request",
        "past: order",
        "will: install",
    ],
    "R": [
        "not: want",
        "no longer: use",
        "past: reject",
        "past: turn down",
        "past: rule out",
        "will not: buy",
    ],
    "O": [
        "past: present",
        "past: show",
        "past: demonstrate",
        "past: describe",
        "past: mention",
        "present: sell",
        "present: recommend",
        "perfect: offer",
    ],
}
RECIPIENT_VERBS = {"present", "show", "demonstrate", "describe", "mention", "recommend"}
REPORT_FRAMES = ["past: report", "past: say", "past: note", "past: hear", "past: learn", "past: confirm"]
ASIDE_FRAMES = ["past: note", "past: report", "past: confirm", "past: explain"]
PRESENTATION_FRAMES = ["past: present", "past: show", "past: demonstrate", "past: describe", "past: mention"]
TOPIC_FRAMES = ["past: come up", "past: mention", "past: discuss", "past: show"]  # the first is active, the rest passive

# A mood is auxiliaries and a form of the verb; words in capitals agree with the subject.
ACTIVE = {
    "present": "PRESENT",
    "past": "past",
    "perfect": "HAVE participle",
    "progressive": "BE gerund",
    "not": "DO not base",
    "past not": "did not base",
    "never": "HAVE never participle",
    "no longer": "no longer PRESENT",
    "will": "will base",
    "will not": "will not base",
    "would": "would base",
    "would not": "would not base",
}
PASSIVE = {
    "present": "BE participle",
    "past": "WAS participle",
    "perfect": "HAVE been participle",
    "progressive": "BE being participle",
    "not": "BE not participle",
    "past not": "WAS not participle",
    "never": "HAVE never been participle",
    "no longer": "BE no longer participle",
    "will": "will be participle",
    "will not": "will not be participle",
}
AGREEMENT = {"HAVE": ("has", "have"), "BE": ("is", "are"), "WAS": ("was", "were"), "DO": ("does", "do")}
TENSES = {"past": "past", "past not": "past", "present": "present", "progressive": "present", "not": "present"}

AUXILIARIES = {
    form: lemma
    for lemma, forms in {
        "have": "has have",
        "be": "is are was were be been being",
        "do": "does do did",
        "will": "will",
        "would": "would",
    }.items()
    for form in forms.split()
}
PARTICLES = {"down", "out", "back", "up"}
PREPOSITIONS = {"on", "with", "for", "against"}

# lemma, present, past, participle, gerund
VERBS = {
    forms[0]: dict(zip(("base", "present", "past", "participle", "gerund"), forms, strict=True))
    for forms in map(
        str.split,
        """
        adopt adopts adopted adopted adopting
        ask asks asked asked asking
        buy buys bought bought buying
        change changes changed changed changing
        come comes came come coming
        confirm confirms confirmed confirmed confirming
        consider considers considered considered considering
        decide decides decided decided deciding
        demonstrate demonstrates demonstrated demonstrated demonstrating
        describe describes described described describing
        discuss discusses discussed discussed discussing
        explain explains explained explained explaining
        hear hears heard heard hearing
        hope hopes hoped hoped hoping
        install installs installed installed installing
        keep keeps kept kept keeping
        learn learns learned learned learning
        like likes liked liked liking
        mention mentions mentioned mentioned mentioning
        need needs needed needed needing
        note notes noted noted noting
        offer offers offered offered offering
        order orders ordered ordered ordering
        part parts parted parted parting
        plan plans planned planned planning
        present presents presented presented presenting
        publish publishes published published publishing
        recommend recommends recommended recommended recommending
        refuse refuses refused refused refusing
        reject rejects rejected rejected rejecting
        rely relies relied relied relying
        report reports reported reported reporting
        request requests requested requested requesting
        revise revises revised revised revising
        rule rules ruled ruled ruling
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
        "DET": "the a an this these some",
        "ADP": "in on at for of from by to after despite because owing due according",
        "ADJ": "last short long second main",
        "PRON": "our",
        "NUM": "two",
    }.items()
    for word in words.split()
}
TAGS |= dict.fromkeys([*PRODUCT_ADJECTIVES, *REASON_ADJECTIVES, *REASON_STATES], "ADJ")
TAGS |= {number: "NUM" for number in NUMBERS}
LEMMAS = {"an": "a", "these": "this", "days": "day", "trials": "trial"}
LEMMAS |= {"rules": "rule", "times": "time", "hours": "hour", "prices": "price", "terms": "term", "fees": "fee"}
LEMMAS |= {group + "s": group for group in GROUPS}
